//! Where output goes: standard output or a file, with failures told as the project's own errors.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use kreon::{Error, Result};

const PENDING_BYTES: usize = 64 << 10;

/// Buffered output with a name for its errors.
pub struct Sink {
    writer: BufWriter<Target>,
    name: String,
}

enum Target {
    Stdout(io::Stdout),
    File(File),
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(stdout) => stdout.write(bytes),
            Self::File(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(stdout) => stdout.flush(),
            Self::File(file) => file.flush(),
        }
    }
}

/// A failure of the output, marked so that it is not taken for one of the store.
#[derive(Debug)]
pub struct OutputError {
    name: String,
    error: io::Error,
}

impl OutputError {
    /// The project's error for it.
    pub fn told(name: &str, error: io::Error) -> Error {
        let output = Self {
            name: name.to_owned(),
            error,
        };
        Error::io("write the output", io::Error::other(output))
    }

    pub fn is_closed_pipe(&self) -> bool {
        self.error.kind() == io::ErrorKind::BrokenPipe
    }
}

impl fmt::Display for OutputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "writing to {} failed: {}", self.name, self.error)
    }
}

impl std::error::Error for OutputError {}

impl Sink {
    pub fn stdout() -> Self {
        Self::over(Target::Stdout(io::stdout()), "standard output".into())
    }

    /// A file, emptied if it is there; `-` is standard output.
    pub fn create(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::stdout());
        }
        let file = File::create(path)
            .map_err(|error| Error::io(format!("create {}", path.display()), error))?;
        Ok(Self::over(Target::File(file), path.display().to_string()))
    }

    fn over(target: Target, name: String) -> Self {
        Self {
            writer: BufWriter::with_capacity(PENDING_BYTES, target),
            name,
        }
    }

    /// Whether a person reads it as it comes.
    pub fn is_terminal(&self) -> bool {
        match self.writer.get_ref() {
            Target::Stdout(stdout) => stdout.is_terminal(),
            Target::File(file) => file.is_terminal(),
        }
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.writer
            .write_all(bytes)
            .map_err(|error| OutputError::told(&self.name, error))
    }

    /// Writes `text` and a line end.
    pub fn line(&mut self, text: &str) -> Result<()> {
        self.write(text.as_bytes())?;
        self.write(b"\n")
    }

    /// Everything so far has reached standard output or the file.
    pub fn flush(&mut self) -> Result<()> {
        self.writer
            .flush()
            .map_err(|error| OutputError::told(&self.name, error))
    }

    /// As [`flush`](Self::flush), and a regular file is durable.
    pub fn finish(mut self) -> Result<()> {
        self.flush()?;
        if let Target::File(file) = self.writer.get_ref()
            && file.metadata().is_ok_and(|metadata| metadata.is_file())
        {
            file.sync_all()
                .map_err(|error| OutputError::told(&self.name, error))?;
        }
        Ok(())
    }
}
