//! The network between two servers: a port that leads to another one while it
//! is open, and to nobody while it is shut.

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::daemon::free_port;

/// Open when it is made.
pub struct Gate {
    port: u16,
    to: u16,
    listening: Option<Listening>,
}

struct Listening {
    /// Everything that is connected, and whether more may be.
    streams: Arc<Mutex<Streams>>,
    thread: JoinHandle<()>,
}

#[derive(Default)]
struct Streams {
    is_shut: bool,
    open: Vec<TcpStream>,
}

impl Gate {
    pub fn new(to: u16) -> Self {
        // One that nobody takes while it is shut.
        let mut gate = Self { port: free_port(), to, listening: None };
        gate.open();
        gate
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Nobody listens, and who was connected is not any more.
    pub fn shut(&mut self) {
        if let Some(listening) = self.listening.take() {
            listening.end(self.port);
        }
    }

    pub fn open(&mut self) {
        if self.listening.is_none() {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port)).expect("the same port");
            self.listening = Some(Listening::start(listener, self.to));
        }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.shut();
    }
}

impl Listening {
    fn start(listener: TcpListener, to: u16) -> Self {
        let streams = Arc::new(Mutex::new(Streams::default()));
        let own = streams.clone();
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                // A server that is not there ends the connection, as it would without a gate.
                let _ = join(&stream, to, &own);
                if lock(&own).is_shut {
                    return;
                }
            }
        });
        Self { streams, thread }
    }

    fn end(self, port: u16) {
        let mut streams = lock(&self.streams);
        streams.is_shut = true;
        streams.open.drain(..).for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
        drop(streams);
        // Wakes the listener, which then looks.
        let _ = TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        self.thread.join().expect("the gate's listener ends");
    }
}

/// Two threads a connection: the tests have a few of them.
fn join(near: &TcpStream, to: u16, streams: &Mutex<Streams>) -> io::Result<()> {
    let far = TcpStream::connect((Ipv4Addr::LOCALHOST, to))?;
    let mut streams = lock(streams);
    if streams.is_shut {
        return Ok(());
    }
    streams.open.extend([near.try_clone()?, far.try_clone()?]);
    for (mut from, mut to) in [(near.try_clone()?, far.try_clone()?), (far.try_clone()?, near.try_clone()?)] {
        std::thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Both);
        });
    }
    Ok(())
}

fn lock(streams: &Mutex<Streams>) -> std::sync::MutexGuard<'_, Streams> {
    streams.lock().unwrap_or_else(PoisonError::into_inner)
}
