//! A program with zmq.rs, ZeroMQ in Rust without libzmq: does with its sockets what the lines of a
//! test say.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::time::Duration;

use tokio::time::{sleep, timeout_at, Instant};
use zeromq::prelude::*;
use zeromq::{
    DealerSocket, PubSocket, PullSocket, PushSocket, RepSocket, ReqSocket, RouterSocket, SubSocket,
    ZmqMessage,
};

type Failure = Box<dyn std::error::Error>;

const RETRY: Duration = Duration::from_millis(50);

/// A socket of the library, which has one type for each.
enum Any {
    Push(PushSocket),
    Pull(PullSocket),
    Pub(PubSocket),
    Sub(SubSocket),
    Req(ReqSocket),
    Rep(RepSocket),
    Dealer(DealerSocket),
    Router(RouterSocket),
}

impl Any {
    fn new(kind: &str) -> Result<Any, Failure> {
        Ok(match kind {
            "PUSH" => Any::Push(PushSocket::new()),
            "PULL" => Any::Pull(PullSocket::new()),
            "PUB" => Any::Pub(PubSocket::new()),
            "SUB" => Any::Sub(SubSocket::new()),
            "REQ" => Any::Req(ReqSocket::new()),
            "REP" => Any::Rep(RepSocket::new()),
            "DEALER" => Any::Dealer(DealerSocket::new()),
            "ROUTER" => Any::Router(RouterSocket::new()),
            _ => return Err(format!("no such type: {kind}").into()),
        })
    }

    async fn open(&mut self, how: &str, address: &str) -> Result<(), Failure> {
        macro_rules! open {
            ($($kind:ident),*) => {
                match self {
                    $(Any::$kind(socket) => {
                        if how == "bind" {
                            socket.bind(address).await?;
                        } else {
                            socket.connect(address).await?;
                        }
                    })*
                }
            };
        }
        open!(Push, Pull, Pub, Sub, Req, Rep, Dealer, Router);
        Ok(())
    }

    async fn send(&mut self, message: ZmqMessage) -> Result<(), Failure> {
        match self {
            Any::Push(socket) => socket.send(message).await?,
            Any::Pub(socket) => socket.send(message).await?,
            Any::Req(socket) => socket.send(message).await?,
            Any::Rep(socket) => socket.send(message).await?,
            Any::Dealer(socket) => socket.send(message).await?,
            Any::Router(socket) => socket.send(message).await?,
            Any::Pull(_) | Any::Sub(_) => return Err("it only receives".into()),
        }
        Ok(())
    }

    async fn receive(&mut self) -> Result<ZmqMessage, Failure> {
        Ok(match self {
            Any::Pull(socket) => socket.recv().await?,
            Any::Sub(socket) => socket.recv().await?,
            Any::Req(socket) => socket.recv().await?,
            Any::Rep(socket) => socket.recv().await?,
            Any::Dealer(socket) => socket.recv().await?,
            Any::Router(socket) => socket.recv().await?,
            Any::Push(_) | Any::Pub(_) => return Err("it only sends".into()),
        })
    }
}

fn word(part: &[u8]) -> String {
    if part.is_empty() {
        return "-".into();
    }
    part.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn part(text: &str) -> Result<Vec<u8>, Failure> {
    if text == "-" {
        return Ok(Vec::new());
    }
    (0..text.len())
        .step_by(2)
        .map(|at| Ok(u8::from_str_radix(&text[at..at + 2], 16)?))
        .collect()
}

/// Waits for a message; a connection that has ended is one that comes again.
async fn receive(socket: &mut Any, ms: u64) -> String {
    let end = Instant::now() + Duration::from_millis(ms);
    loop {
        match timeout_at(end, socket.receive()).await {
            Err(_) => return "none".into(),
            Ok(Err(error)) => {
                eprintln!("recv: {error}");
                sleep(RETRY).await;
            }
            Ok(Ok(message)) => {
                let words: Vec<String> = message.iter().map(|frame| word(frame)).collect();
                return format!("got {}", words.join(" "));
            }
        }
        if Instant::now() >= end {
            return "none".into();
        }
    }
}

async fn take(sockets: &mut HashMap<String, Any>, line: &str) -> Result<String, Failure> {
    let words: Vec<&str> = line.split(' ').collect();
    let name = words[1].to_string();
    if words[0] == "open" {
        let mut socket = Any::new(words[2])?;
        socket.open(words[3], words[4]).await?;
        sockets.insert(name, socket);
        return Ok("did".into());
    }
    if words[0] == "close" {
        sockets.remove(&name);
        return Ok("did".into());
    }
    let socket = sockets.get_mut(&name).ok_or("no such socket")?;
    match (words[0], socket) {
        ("recv", socket) => return Ok(receive(socket, words[2].parse()?).await),
        ("send", socket) => {
            let mut message = ZmqMessage::from(part(words[2])?);
            for text in &words[3..] {
                message.push_back(part(text)?.into());
            }
            socket.send(message).await?;
        }
        ("subscribe", Any::Sub(socket)) => {
            socket
                .subscribe(&String::from_utf8(part(words[2])?)?)
                .await?;
        }
        ("unsubscribe", Any::Sub(socket)) => {
            socket
                .unsubscribe(&String::from_utf8(part(words[2])?)?)
                .await?;
        }
        _ => return Err(format!("no such word: {}", words[0]).into()),
    }
    Ok("did".into())
}

#[tokio::main]
async fn main() {
    let mut sockets = HashMap::new();
    for line in std::io::stdin().lock().lines() {
        let answer = match take(&mut sockets, &line.expect("a line")).await {
            Ok(answer) => answer,
            Err(error) => format!("refused {}", error.to_string().replace('\n', " ")),
        };
        println!("{answer}");
        std::io::stdout().flush().expect("somebody reads");
    }
    std::process::exit(0);
}
