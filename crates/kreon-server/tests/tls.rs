//! TLS, with a certificate that is made for the test.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use kreon_server::TlsFiles;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use common::{Running, request};

type Encrypted = StreamOwned<ClientConnection, TcpStream>;

fn running(folder: &std::path::Path) -> (Running, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let files = TlsFiles {
        certificates: folder.join("certificate.pem"),
        key: folder.join("key.pem"),
    };
    std::fs::write(&files.certificates, made.cert.pem()).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    let certificate = made.cert.der().clone();
    (
        Running::with(|settings| settings.tls = Some(files)),
        certificate,
    )
}

fn connect(running: &Running, certificate: &CertificateDer<'static>) -> Encrypted {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_root_certificates(roots).with_no_client_auth());
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TcpStream::connect(running.address()).unwrap();
    stream.set_read_timeout(Some(common::PATIENCE)).unwrap();
    StreamOwned::new(ClientConnection::new(config, name).unwrap(), stream)
}

#[test]
fn requests_and_long_replies_pass_through_tls() {
    let folder = tempfile::tempdir().unwrap();
    let (running, certificate) = running(folder.path());
    let mut stream = connect(&running, &certificate);
    let value: Vec<u8> = (0..1 << 20).map(|place: u32| (place % 251) as u8).collect();
    stream.write_all(&request(&[b"SET", b"k", &value])).unwrap();
    stream.write_all(&request(&[b"GET", b"k"])).unwrap();
    let head = b"+OK\r\n$1048576\r\n";
    let mut got = vec![0; head.len() + value.len() + 2];
    stream.read_exact(&mut got).unwrap();
    assert_eq!(&got[..head.len()], head);
    assert_eq!(&got[head.len()..head.len() + value.len()], value);
}

#[test]
fn client_without_tls_gets_no_reply() {
    let folder = tempfile::tempdir().unwrap();
    let (running, certificate) = running(folder.path());
    let mut plain = running.connect();
    plain.send(b"PING\r\n");
    let mut got = Vec::new();
    let _ = plain.stream.read_to_end(&mut got);
    assert!(!got.starts_with(b"+PONG"));
    let mut stream = connect(&running, &certificate);
    stream.write_all(b"PING\r\n").unwrap();
    let mut pong = [0; 7];
    stream.read_exact(&mut pong).unwrap();
    assert_eq!(&pong, b"+PONG\r\n");
}
