//! TLS.

use std::sync::Arc;

use kreon::{Error, Result};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::settings::TlsFiles;

/// What takes connections with the certificate of `files`: TLS 1.2 and 1.3, without certificates of clients.
///
/// # Errors
/// `Io`, `InvalidArgument`: a file cannot be read, or is not what it should be; the message names it.
pub(crate) fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor> {
    let wrong = |path: &std::path::Path, error: &dyn std::fmt::Display| {
        Error::invalid(format!("{}: {error}", path.display()))
    };
    let certificates = CertificateDer::pem_file_iter(&files.certificates)
        .and_then(Iterator::collect::<std::result::Result<Vec<_>, _>>)
        .map_err(|error| wrong(&files.certificates, &error))?;
    if certificates.is_empty() {
        return Err(wrong(&files.certificates, &"no certificate"));
    }
    let key =
        PrivateKeyDer::from_pem_file(&files.key).map_err(|error| wrong(&files.key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            builder
                .with_no_client_auth()
                .with_single_cert(certificates, key)
        })
        .map_err(|error| wrong(&files.certificates, &error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
