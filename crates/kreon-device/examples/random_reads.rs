//! The read rate of a device: random reads of a file with `O_DIRECT` at a given depth.
//!
//! `cargo run --release -p kreon-device --example random_reads -- FILE [SECONDS] [DEPTH[:BYTES[:FLAGS]]..]`; depth 0
//! means `pread` by two threads. Reads of BYTES (4096) are aligned to 512 bytes, or to 4096 if they are that long.
//! FLAGS are letters: `d`: completions run when the thread waits (`DEFER_TASKRUN`), otherwise at any of its system
//! calls (`COOP_TASKRUN`); `f`: the file is registered; `g`: waits for an eighth of the reads in flight instead of one;
//! `a`: the file is opened without `O_NOATIME`.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::time::{Duration, Instant};

use io_uring::{IoUring, opcode, types};
use kreon_device::AlignedBuf;
use rustix::time::{ClockId, clock_gettime};

const PAGE: usize = 4096;

/// Smallest unit of direct I/O on most devices.
const BLOCK: usize = 512;

/// XorShift.
fn draw(random: &mut u64) -> u64 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    *random
}

/// A random offset for a read of `bytes` in a file of `len` bytes.
fn place(random: &mut u64, len: u64, bytes: usize) -> u64 {
    let unit = if bytes.is_multiple_of(PAGE) {
        PAGE
    } else {
        BLOCK
    } as u64;
    draw(random) % ((len - bytes as u64) / unit) * unit
}

fn measure_pread(file: &File, bytes: usize, flags: &str, time: Duration) -> std::io::Result<()> {
    const THREADS: u64 = 2;
    let len = file.metadata()?.len();
    let (start, cpu_start) = (Instant::now(), cpu());
    let reads = std::thread::scope(|scope| {
        let threads: Vec<_> = (1..=THREADS)
            .map(|thread| {
                scope.spawn(move || {
                    let (mut random, mut reads) = (0x9e37_79b9_7f4a_7c15 * thread, 0_u64);
                    let mut buffer = AlignedBuf::new(bytes);
                    while start.elapsed() < time {
                        file.read_exact_at(&mut buffer, place(&mut random, len, bytes))
                            .expect("a read");
                        reads += 1;
                    }
                    reads
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a thread"))
            .sum()
    });
    print(
        &format!("pread, 2 threads {flags}"),
        bytes,
        reads,
        start,
        cpu_start,
    );
    Ok(())
}

fn print(how: &str, bytes: usize, reads: u64, start: Instant, cpu_start: Duration) {
    let rate = reads as f64 / start.elapsed().as_secs_f64();
    let cpu_us = (cpu() - cpu_start).as_secs_f64() * 1e6 / reads as f64;
    println!("raw {how:16} {bytes:6} B: {rate:9.0} reads/s, {cpu_us:6.2} CPU us a read");
}

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn ring_of(depth: usize, flags: &str) -> std::io::Result<IoUring> {
    let mut builder = IoUring::builder();
    match flags.contains('d') {
        true => builder.setup_single_issuer().setup_defer_taskrun(),
        false => builder.setup_coop_taskrun(),
    };
    builder.build(depth as u32)
}

fn measure(
    file: &File,
    depth: usize,
    bytes: usize,
    flags: &str,
    time: Duration,
) -> std::io::Result<()> {
    let len = file.metadata()?.len();
    let mut ring = ring_of(depth, flags)?;
    let mut buffers: Vec<_> = (0..depth).map(|_| AlignedBuf::new(bytes)).collect();
    let fd = types::Fd(file.as_raw_fd());
    if flags.contains('f') {
        ring.submitter().register_files(&[file.as_raw_fd()])?;
    }
    let mut idle: Vec<usize> = (0..depth).collect();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let (mut reads, start, cpu_start) = (0u64, Instant::now(), cpu());
    loop {
        let more = start.elapsed() < time;
        while more && let Some(slot) = idle.pop() {
            let place = place(&mut random, len, bytes);
            let (memory, count) = (buffers[slot].as_mut_ptr(), bytes as u32);
            let read = match flags.contains('f') {
                true => opcode::Read::new(types::Fixed(0), memory, count),
                false => opcode::Read::new(fd, memory, count),
            };
            let entry = read.offset(place).build().user_data(slot as u64);
            // SAFETY: the buffer lives until the loop has seen all completions, and is not accessed before.
            unsafe { ring.submission().push(&entry) }.expect("as many entries as buffers");
        }
        let in_flight = depth - idle.len();
        if in_flight == 0 {
            break;
        }
        let wanted = if flags.contains('g') {
            in_flight.div_ceil(8)
        } else {
            1
        };
        ring.submit_and_wait(wanted)?;
        for completion in ring.completion() {
            assert_eq!(completion.result(), bytes as i32, "a read failed");
            idle.push(completion.user_data() as usize);
            reads += 1;
        }
    }
    print(
        &format!("depth {depth} {flags}"),
        bytes,
        reads,
        start,
        cpu_start,
    );
    Ok(())
}

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().expect("a file");
    let seconds = arguments
        .next()
        .map_or(2.0, |s| s.parse().expect("seconds"));
    let mut points: Vec<_> = arguments.map(|point| Point::of(&point)).collect();
    if points.is_empty() {
        points = ["1", "32", "64"].map(Point::of).into();
    }
    for Point {
        depth,
        bytes,
        flags,
    } in points
    {
        let time = Duration::from_secs_f64(seconds);
        let mut modes = rustix::fs::OFlags::DIRECT;
        modes.set(rustix::fs::OFlags::NOATIME, !flags.contains('a'));
        let file = File::options()
            .read(true)
            .custom_flags(modes.bits() as i32)
            .open(&path)?;
        match depth {
            0 => measure_pread(&file, bytes, &flags, time)?,
            _ => measure(&file, depth, bytes, &flags, time)?,
        }
    }
    Ok(())
}

/// One configuration to measure.
struct Point {
    depth: usize,
    bytes: usize,
    flags: String,
}

impl Point {
    fn of(text: &str) -> Self {
        let mut parts = text.split(':');
        let mut number = |or: usize| {
            parts
                .next()
                .map_or(or, |part| part.parse().expect("a number"))
        };
        let (depth, bytes) = (number(1), number(PAGE));
        let flags = parts.next().unwrap_or_default().to_owned();
        Self {
            depth,
            bytes,
            flags,
        }
    }
}
