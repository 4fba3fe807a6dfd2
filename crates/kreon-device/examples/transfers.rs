//! The rate of a queue of transfers beside that of `fio`: random reads, writes and both, 64 and one at a time.
//!
//! `cargo run --release -p kreon-device --example transfers -- FILE [SECONDS] [MIB] [ROUNDS] [BYTES]`. FILE must not
//! exist: it is written (1024 MiB), measured in rounds (3) of SECONDS (2) for each point, the queue and `fio` in
//! turns, and removed. Transfers are of BYTES (4096). Printed are the medians of the rounds. At depth 1 `pread` and
//! `pwrite` are measured, too: a transfer that is alone should be as quick.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_device::{AlignedBuf, Device, FileDevice, FileOptions};
use rustix::fs::Advice;
use rustix::time::{ClockId, clock_gettime};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const MIB: u64 = 1 << 20;

/// What is measured.
struct Course {
    path: PathBuf,
    len_bytes: u64,
    bytes: usize,
    time: Duration,
}

/// Transfers a second, and the time of the processor for each in microseconds.
#[derive(Clone, Copy)]
struct Rate {
    per_second: f64,
    cpu_us: f64,
}

impl Rate {
    fn of(transfers: u64, start: Instant, cpu_start: Duration) -> Self {
        let cpu = cpu() - cpu_start;
        Self {
            per_second: transfers as f64 / start.elapsed().as_secs_f64(),
            cpu_us: cpu.as_secs_f64() * 1e6 / transfers as f64,
        }
    }
}

/// Of all threads of this process, those of the kernel that work for it included.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// XorShift.
fn draw(random: &mut u64) -> u64 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    *random
}

impl Course {
    /// A place for a transfer, and whether it is a read, of which there are `reads` in 100.
    fn next(&self, random: &mut u64, reads: u64) -> (u64, bool) {
        let places = self.len_bytes / self.bytes as u64;
        let offset = draw(random) % places * self.bytes as u64;
        (offset, draw(random) % 100 < reads)
    }

    fn queue(&self, device: &Arc<FileDevice>, depth: usize, reads: u64) -> Outcome<Rate> {
        let mut queue = Arc::clone(device).transfer_queue(depth);
        let mut idle: Vec<_> = (0..depth).map(|_| AlignedBuf::new(self.bytes)).collect();
        let (mut ended, mut transfers) = (Vec::new(), 0);
        let mut random = 0x9e37_79b9_7f4a_7c15;
        let (start, cpu_start) = (Instant::now(), cpu());
        while start.elapsed() < self.time {
            for buffer in idle.drain(..) {
                let (offset, is_read) = self.next(&mut random, reads);
                match is_read {
                    true => queue.read(0, offset, buffer, self.bytes),
                    false => queue.write(0, offset, buffer, self.bytes),
                }
            }
            queue.wait(Duration::from_secs(1));
            queue.reap(&mut ended);
            transfers += ended.len() as u64;
            for one in ended.drain(..) {
                one.outcome?;
                idle.extend(one.buffer);
            }
        }
        Ok(Rate::of(transfers, start, cpu_start))
    }

    fn plain(&self, reads: u64) -> Outcome<Rate> {
        let direct = rustix::fs::OFlags::DIRECT.bits() as i32;
        let mut options = File::options();
        let options = options.read(true).write(true).custom_flags(direct);
        let file = options.open(&self.path)?;
        let mut buffer = AlignedBuf::new(self.bytes);
        let (mut transfers, mut random) = (0, 0x9e37_79b9_7f4a_7c15);
        let (start, cpu_start) = (Instant::now(), cpu());
        while start.elapsed() < self.time {
            match self.next(&mut random, reads) {
                (offset, true) => file.read_exact_at(&mut buffer, offset)?,
                (offset, false) => file.write_all_at(&buffer, offset)?,
            }
            transfers += 1;
        }
        Ok(Rate::of(transfers, start, cpu_start))
    }

    /// `None` if it does not run here.
    fn fio(&self, depth: usize, reads: u64) -> Option<Rate> {
        let output = Command::new("fio")
            .args(["--name=transfers", "--rw=randrw", "--direct=1"])
            .args(["--ioengine=io_uring", "--norandommap", "--randrepeat=0"])
            .args(["--time_based", "--output-format=terse", "--terse-version=3"])
            .arg(format!("--filename={}", self.path.display()))
            .arg(format!("--rwmixread={reads}"))
            .arg(format!("--size={}", self.len_bytes))
            .arg(format!("--bs={}", self.bytes))
            .arg(format!("--iodepth={depth}"))
            .arg(format!("--runtime={}ms", self.time.as_millis()))
            .output()
            .ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        let fields: Vec<_> = text.trim().split(';').collect();
        let number = |at: usize| -> Option<f64> {
            let field: &&str = fields.get(at)?;
            field.trim_end_matches('%').parse().ok()
        };
        // Of format 3: the rates of reads and writes, and the shares of one processor.
        let per_second = number(7)? + number(48)?;
        let percent = number(87)? + number(88)?;
        Some(Rate {
            per_second,
            cpu_us: percent * 1e4 / per_second,
        })
    }

    /// Measures one point, and prints it.
    fn point(
        &self,
        device: &Arc<FileDevice>,
        depth: usize,
        reads: u64,
        rounds: usize,
    ) -> Outcome<()> {
        let (mut queue, mut plain, mut fio) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..rounds {
            // In turns, as the one before leaves its mark on the device.
            let is_first = round % 2 == 0;
            if is_first {
                queue.push(self.queue(device, depth, reads)?);
            }
            if depth == 1 {
                plain.push(self.plain(reads)?);
            }
            fio.extend(self.fio(depth, reads));
            if !is_first {
                queue.push(self.queue(device, depth, reads)?);
            }
        }
        let queue = median(queue).ok_or("no rounds")?;
        print!("depth {depth:3}, {reads:3} % reads:");
        print!(
            " queue {:7.0}/s, {:5.2} us CPU",
            queue.per_second, queue.cpu_us
        );
        for (name, other) in [("calls", median(plain)), ("fio", median(fio))] {
            if let Some(other) = other {
                let share = queue.per_second / other.per_second;
                print!(
                    "; {name} {:7.0}/s, {:5.2} us CPU: {share:.2}",
                    other.per_second, other.cpu_us
                );
            }
        }
        println!();
        Ok(())
    }
}

/// The one in the middle by its rate.
fn median(mut rates: Vec<Rate>) -> Option<Rate> {
    rates.sort_by(|a, b| a.per_second.total_cmp(&b.per_second));
    rates.get(rates.len() / 2).copied()
}

/// Writes a new file, so that no measured write has to allocate.
fn fill(path: &Path, len_bytes: u64) -> Outcome<()> {
    let mut file = File::create_new(path)?;
    let (mut random, mut chunk) = (1, vec![0; MIB as usize]);
    for _ in 0..len_bytes / MIB {
        for word in chunk.as_chunks_mut::<8>().0 {
            *word = draw(&mut random).to_le_bytes();
        }
        file.write_all(&chunk)?;
    }
    file.sync_all()?;
    // Direct I/O would have to get rid of what is in the page cache.
    Ok(rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)?)
}

fn measure(course: &Course, rounds: usize) -> Outcome<()> {
    let (device, _) = FileDevice::open(&course.path, &FileOptions::default())?;
    let device = Arc::new(device);
    println!(
        "transfers of {} bytes in {} MiB, rings: {}, direct: {}",
        course.bytes,
        course.len_bytes / MIB,
        device.has_rings(),
        device.is_direct()
    );
    for depth in [64, 1] {
        for reads in [100, 0, 50] {
            course.point(&device, depth, reads, rounds)?;
        }
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let path = PathBuf::from(arguments.next().ok_or("a file that does not exist")?);
    let mut number = |or: f64| arguments.next().map_or(Ok(or), |text| text.parse::<f64>());
    let time = Duration::from_secs_f64(number(2.0)?);
    let len_bytes = number(1024.0)? as u64 * MIB;
    let rounds = number(3.0)? as usize;
    let course = Course {
        path,
        len_bytes,
        bytes: number(4096.0)? as usize,
        time,
    };
    if Command::new("fio").arg("--version").output().is_err() {
        println!("without fio, which is not installed");
    }
    fill(&course.path, len_bytes)?;
    let outcome = measure(&course, rounds);
    std::fs::remove_file(&course.path)?;
    outcome
}
