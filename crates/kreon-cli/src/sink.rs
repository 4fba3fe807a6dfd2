//! Where output goes: standard output or a file, with failures told as the project's own errors.

use std::fs::File;
use std::io::{self, BufWriter, Write};
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

    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.writer
            .write_all(bytes)
            .map_err(|error| Error::io(format!("write to {}", self.name), error))
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
            .map_err(|error| Error::io(format!("write to {}", self.name), error))
    }

    /// As [`flush`](Self::flush), and a regular file is durable.
    pub fn finish(mut self) -> Result<()> {
        self.flush()?;
        if let Target::File(file) = self.writer.get_ref()
            && file.metadata().is_ok_and(|metadata| metadata.is_file())
        {
            file.sync_all()
                .map_err(|error| Error::io(format!("flush {}", self.name), error))?;
        }
        Ok(())
    }
}
