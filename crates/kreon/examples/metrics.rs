//! Serves the metrics of a store to Prometheus, for some requests.
//!
//! ```sh
//! cargo run --example metrics -- 127.0.0.1:9184 3
//! curl http://127.0.0.1:9184/metrics
//! ```

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

use kreon::Store;

fn answer(mut stream: TcpStream, store: &Store) -> std::io::Result<()> {
    // A request without a body ends with an empty line.
    for line in BufReader::new(stream.try_clone()?).lines() {
        if line?.is_empty() {
            break;
        }
    }
    let text = store.stats().to_prometheus();
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nConnection: close\r\n";
    write!(stream, "{head}Content-Length: {}\r\n\r\n{text}", text.len())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or("127.0.0.1:9184".to_owned());
    let requests = arguments
        .next()
        .map_or(Ok(usize::MAX), |given| given.parse())?;
    let folder = tempfile::tempdir()?;
    let store = Store::open(folder.path().join("store"))?;
    let region = store.region("numbers")?;
    for number in 0..1000_u32 {
        region.put(number.to_be_bytes(), number.to_string())?;
    }
    store.checkpoint()?;
    for stream in TcpListener::bind(address)?.incoming().take(requests) {
        answer(stream?, &store)?;
    }
    store.close()?;
    Ok(())
}
