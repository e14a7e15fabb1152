//! amqprs, with its callbacks; a consumer is a receiver of messages, or an `AsyncConsumer` where it answers.

use std::path::Path;

use amqprs::{
    Ack, BasicProperties, Cancel, Close, CloseChannel, DELIVERY_MODE_PERSISTENT, Deliver,
    FieldTable, FieldValue, Nack, Return,
    callbacks::{ChannelCallback, ConnectionCallback},
    channel::*,
    connection::{Connection, OpenConnectionArguments},
    consumer::AsyncConsumer,
    error::Error,
    tls::TlsAdaptor,
};
use async_trait::async_trait;
use players::{Outcome, PATIENCE, QUIET, ask, name, play, same, told};
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    time::timeout,
};

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;
type Consumer = UnboundedReceiver<ConsumerMessage>;

/// Unsolicited methods of the broker.
#[derive(Debug, PartialEq)]
enum Event {
    Acked { tag: u64, multiple: bool },
    Nacked(u64),
    Returned(u16, String, Vec<u8>),
    Cancelled(String),
    ChannelClosed(u16),
    ConnectionClosed(u16),
}

/// The callbacks of a connection and its channels: they send on what they are called with.
#[derive(Clone)]
struct Forwarding(UnboundedSender<Event>);

impl Forwarding {
    /// The receiver is gone when a scenario has ended.
    fn forward(&self, event: Event) {
        let _ = self.0.send(event);
    }
}

#[async_trait]
impl ConnectionCallback for Forwarding {
    async fn close(&mut self, _: &Connection, close: Close) -> Result<(), Error> {
        self.forward(Event::ConnectionClosed(close.reply_code()));
        Ok(())
    }
    async fn blocked(&mut self, _: &Connection, _: String) {}
    async fn unblocked(&mut self, _: &Connection) {}
    async fn secret_updated(&mut self, _: &Connection) {}
}

#[async_trait]
impl ChannelCallback for Forwarding {
    async fn close(&mut self, _: &Channel, close: CloseChannel) -> Result<(), Error> {
        self.forward(Event::ChannelClosed(close.reply_code()));
        Ok(())
    }
    async fn cancel(&mut self, _: &Channel, cancel: Cancel) -> Result<(), Error> {
        self.forward(Event::Cancelled(cancel.consumer_tag().clone()));
        Ok(())
    }
    async fn flow(&mut self, _: &Channel, active: bool) -> Result<bool, Error> {
        Ok(active)
    }
    async fn publish_ack(&mut self, _: &Channel, ack: Ack) {
        let (tag, multiple) = (ack.delivery_tag(), ack.mutiple());
        self.forward(Event::Acked { tag, multiple });
    }
    async fn publish_nack(&mut self, _: &Channel, nack: Nack) {
        self.forward(Event::Nacked(nack.delivery_tag()));
    }
    async fn publish_return(
        &mut self,
        _: &Channel,
        returned: Return,
        _: BasicProperties,
        content: Vec<u8>,
    ) {
        let text = returned.reply_text().clone();
        self.forward(Event::Returned(returned.reply_code(), text, content));
    }
}

struct Opened {
    connection: Connection,
    channel: Channel,
    events: UnboundedReceiver<Event>,
    callbacks: Forwarding,
}

impl Opened {
    async fn event(&mut self) -> Fallible<Event> {
        let came = timeout(PATIENCE, self.events.recv()).await;
        Ok(came
            .map_err(|_| "no callback was called")?
            .ok_or("no more callbacks")?)
    }

    async fn another_channel(&self) -> Fallible<Channel> {
        let channel = self.connection.open_channel(None).await?;
        channel.register_callback(self.callbacks.clone()).await?;
        Ok(channel)
    }

    /// The call's own error says only that it got no answer; the channel's callback has the reply code.
    async fn refused<T>(&mut self, came: Result<T, Error>, expected: u16) -> Outcome {
        if came.is_ok() {
            return Err(format!("not refused with {expected}").into());
        }
        same(self.event().await?, Event::ChannelClosed(expected))
    }
}

/// How to connect; amqprs takes the virtual host of a URL as it stands, so `%2F` would be another one than `/`.
fn arguments(url: &str) -> Result<OpenConnectionArguments, Error> {
    OpenConnectionArguments::try_from(url.strip_suffix("/%2F").unwrap_or(url))
}

async fn opened() -> Fallible<Opened> {
    let (sender, events) = unbounded_channel();
    let callbacks = Forwarding(sender);
    let connection = Connection::open(&arguments(&told("AMQP_URL"))?).await?;
    connection.register_callback(callbacks.clone()).await?;
    let channel = connection.open_channel(None).await?;
    channel.register_callback(callbacks.clone()).await?;
    Ok(Opened {
        connection,
        channel,
        events,
        callbacks,
    })
}

fn table(pairs: &[(&str, FieldValue)]) -> FieldTable {
    let mut table = FieldTable::new();
    for (key, value) in pairs {
        table.insert((*key).try_into().unwrap(), value.clone());
    }
    table
}

fn text(value: &str) -> FieldValue {
    FieldValue::from(value)
}

/// Declare an exclusive queue.
async fn queue(
    channel: &Channel,
    stem: &str,
    arguments: &[(&str, FieldValue)],
) -> Result<String, Error> {
    let declaring = QueueDeclareArguments::new(&name(stem))
        .exclusive(true)
        .arguments(table(arguments))
        .finish();
    channel.queue_declare(declaring).await?;
    Ok(name(stem))
}

async fn send(channel: &Channel, queue: &str, body: &str) -> Result<(), Error> {
    send_with(channel, queue, body, BasicProperties::default()).await
}

async fn send_with(
    channel: &Channel,
    queue: &str,
    body: &str,
    properties: BasicProperties,
) -> Result<(), Error> {
    let to = BasicPublishArguments::new("", queue);
    channel.basic_publish(properties, body.into(), to).await
}

async fn confirming(channel: &Channel) -> Result<(), Error> {
    channel
        .confirm_select(ConfirmSelectArguments::new(false))
        .await
}

async fn consumer(channel: &Channel, queue: &str, no_ack: bool) -> Result<Consumer, Error> {
    let consuming = BasicConsumeArguments::new(queue, "")
        .auto_ack(no_ack)
        .finish();
    Ok(channel.basic_consume_rx(consuming).await?.1)
}

async fn next(consumer: &mut Consumer) -> Fallible<(Deliver, BasicProperties, Vec<u8>)> {
    let came = timeout(PATIENCE, consumer.recv()).await;
    let message = came
        .map_err(|_| "no message came")?
        .ok_or("the consumer has ended")?;
    // The library guarantees that all are there.
    Ok((
        message.deliver.unwrap(),
        message.basic_properties.unwrap(),
        message.content.unwrap(),
    ))
}

async fn expect(consumer: &mut Consumer, bodies: &[&str]) -> Outcome {
    for body in bodies {
        same(
            String::from_utf8(next(consumer).await?.2)?,
            body.to_string(),
        )?;
    }
    Ok(())
}

async fn connect() -> Outcome {
    let Opened {
        connection,
        channel,
        ..
    } = opened().await?;
    let q = queue(&channel, "connect", &[]).await?;
    let headers = table(&[("n", FieldValue::I(1))]);
    let properties = BasicProperties::default()
        .with_content_type("text/plain")
        .with_message_id("m1")
        .with_headers(headers.clone())
        .finish();
    send_with(&channel, &q, "hello", properties).await?;
    let (_, came, body) = next(&mut consumer(&channel, &q, true).await?).await?;
    same(
        (
            body.as_slice(),
            came.content_type().map(String::as_str),
            came.message_id().map(String::as_str),
            came.headers(),
        ),
        (
            b"hello".as_slice(),
            Some("text/plain"),
            Some("m1"),
            Some(&headers),
        ),
    )?;
    channel.close().await?;
    Ok(connection.close().await?)
}

async fn topology() -> Outcome {
    let mut opened = opened().await?;
    let channel = opened.channel.clone();
    let (first, second, q) = (name("events"), name("archive"), name("topology"));
    for (exchange, kind) in [(&first, "topic"), (&second, "fanout")] {
        let declaring = ExchangeDeclareArguments::new(exchange, kind)
            .durable(true)
            .finish();
        channel.exchange_declare(declaring).await?;
    }
    channel
        .queue_declare(QueueDeclareArguments::durable_client_named(&q))
        .await?;
    channel
        .exchange_bind(ExchangeBindArguments::new(&second, &first, "order.#"))
        .await?;
    channel
        .queue_bind(QueueBindArguments::new(&q, &second, ""))
        .await?;
    let to = BasicPublishArguments::new(&first, "order.created");
    channel
        .basic_publish(Default::default(), b"1".into(), to.clone())
        .await?;
    channel
        .exchange_unbind(ExchangeUnbindArguments::new(&second, &first, "order.#"))
        .await?;
    channel
        .basic_publish(Default::default(), b"2".into(), to)
        .await?;
    channel
        .queue_unbind(QueueUnbindArguments::new(&q, &second, ""))
        .await?;
    same(
        channel.queue_purge(QueuePurgeArguments::new(&q)).await?,
        Some(1),
    )?;
    let passive = QueueDeclareArguments::new(&name("missing"))
        .passive(true)
        .finish();
    let came = opened.another_channel().await?.queue_declare(passive).await;
    opened.refused(came, 404).await?;
    let transient = QueueDeclareArguments::new(&q);
    let came = opened
        .another_channel()
        .await?
        .queue_declare(transient)
        .await;
    opened.refused(came, 406).await?;
    channel.queue_delete(QueueDeleteArguments::new(&q)).await?;
    for exchange in [&first, &second] {
        channel
            .exchange_delete(ExchangeDeleteArguments::new(exchange))
            .await?;
    }
    Ok(())
}

async fn confirms() -> Outcome {
    let mut opened = opened().await?;
    let q = queue(&opened.channel, "confirms", &[]).await?;
    confirming(&opened.channel).await?;
    for _ in 0..100 {
        let persistent = BasicProperties::default()
            .with_delivery_mode(DELIVERY_MODE_PERSISTENT)
            .finish();
        send_with(&opened.channel, &q, "x", persistent).await?;
    }
    let mut pending: Vec<u64> = (1..=100).collect();
    while !pending.is_empty() {
        match opened.event().await? {
            Event::Acked { tag, multiple } => {
                pending.retain(|&number| number != tag && !(multiple && number < tag));
            }
            other => return Err(format!("{other:?} instead of a confirm").into()),
        }
    }
    Ok(())
}

async fn returns() -> Outcome {
    let mut opened = opened().await?;
    confirming(&opened.channel).await?;
    let mandatory = BasicPublishArguments::new("", &name("nobody"))
        .mandatory(true)
        .finish();
    opened
        .channel
        .basic_publish(Default::default(), b"lost".into(), mandatory)
        .await?;
    let (returned, acked) = (opened.event().await?, opened.event().await?);
    same(
        (returned, acked),
        (
            Event::Returned(312, "NO_ROUTE".into(), b"lost".into()),
            Event::Acked {
                tag: 1,
                multiple: false,
            },
        ),
    )
}

async fn consume() -> Outcome {
    let opened = opened().await?;
    let channel = &opened.channel;
    let q = queue(channel, "consume", &[]).await?;
    for number in 0..10 {
        send(channel, &q, &number.to_string()).await?;
    }
    channel
        .basic_qos(BasicQosArguments::new(0, 3, false))
        .await?;
    let mut deliveries = consumer(channel, &q, false).await?;
    expect(&mut deliveries, &["0", "1"]).await?;
    let (last, ..) = next(&mut deliveries).await?;
    if timeout(QUIET, deliveries.recv()).await.is_ok() {
        return Err("one more than the prefetch count".into());
    }
    channel
        .basic_ack(BasicAckArguments::new(last.delivery_tag(), true))
        .await?;
    expect(&mut deliveries, &["3", "4", "5"]).await
}

async fn requeue() -> Outcome {
    let opened = opened().await?;
    let channel = &opened.channel;
    let q = queue(channel, "requeue", &[]).await?;
    let mut deliveries = consumer(channel, &q, false).await?;
    send(channel, &q, "again").await?;
    let (first, ..) = next(&mut deliveries).await?;
    channel
        .basic_nack(BasicNackArguments::new(first.delivery_tag(), false, true))
        .await?;
    let (second, ..) = next(&mut deliveries).await?;
    same((first.redelivered(), second.redelivered()), (false, true))
}

async fn dead_letter() -> Outcome {
    let opened = opened().await?;
    let channel = &opened.channel;
    let (work, wait) = (name("work"), name("wait"));
    let back = |to: &str| {
        vec![
            ("x-dead-letter-exchange", text("")),
            ("x-dead-letter-routing-key", text(to)),
        ]
    };
    queue(channel, "work", &back(&wait)).await?;
    let waiting = [back(&work), vec![("x-message-ttl", FieldValue::I(200))]].concat();
    queue(channel, "wait", &waiting).await?;
    let mut deliveries = consumer(channel, &work, false).await?;
    send(channel, &work, "try").await?;
    let (first, ..) = next(&mut deliveries).await?;
    channel
        .basic_reject(BasicRejectArguments::new(first.delivery_tag(), false))
        .await?;
    let (_, retried, _) = next(&mut deliveries).await?;
    let Some(FieldValue::A(deaths)) = field(retried.headers().ok_or("no headers")?, "x-death")
    else {
        return Err("no x-death".into());
    };
    let mut history = Vec::new();
    for death in Vec::from(deaths) {
        let death = FieldTable::try_from(death)?;
        history.push(["queue", "reason", "count"].map(|key| field(&death, key)));
    }
    let entry = |queue: &str, reason: &str| [text(queue), text(reason), FieldValue::l(1)].map(Some);
    same(
        history,
        vec![entry(&wait, "expired"), entry(&work, "rejected")],
    )
}

fn field(table: &FieldTable, key: &str) -> Option<FieldValue> {
    table.get(&key.try_into().unwrap()).cloned()
}

async fn ttl() -> Outcome {
    let opened = opened().await?;
    let channel = &opened.channel;
    let dead = queue(channel, "dead", &[]).await?;
    let to_dead = vec![
        ("x-dead-letter-exchange", text("")),
        ("x-dead-letter-routing-key", text(&dead)),
    ];
    let mut deliveries = consumer(channel, &dead, true).await?;
    let own = queue(channel, "own", &to_dead).await?;
    let expiring = BasicProperties::default().with_expiration("100").finish();
    send_with(channel, &own, "own", expiring).await?;
    expect(&mut deliveries, &["own"]).await?;
    let all = [to_dead, vec![("x-message-ttl", FieldValue::I(200))]].concat();
    let all = queue(channel, "all", &all).await?;
    send(channel, &all, "all").await?;
    expect(&mut deliveries, &["all"]).await
}

async fn priority() -> Outcome {
    let opened = opened().await?;
    let channel = &opened.channel;
    let q = queue(channel, "priority", &[("x-max-priority", FieldValue::I(5))]).await?;
    for priority in [1, 5, 3] {
        let properties = BasicProperties::default().with_priority(priority).finish();
        send_with(channel, &q, &priority.to_string(), properties).await?;
    }
    expect(&mut consumer(channel, &q, true).await?, &["5", "3", "1"]).await
}

/// Answers questions in upper case.
struct Shouting;

#[async_trait]
impl AsyncConsumer for Shouting {
    async fn consume(
        &mut self,
        channel: &Channel,
        _: Deliver,
        question: BasicProperties,
        body: Vec<u8>,
    ) {
        let (Some(reply_to), Some(correlation)) = (question.reply_to(), question.correlation_id())
        else {
            return;
        };
        let properties = BasicProperties::default()
            .with_correlation_id(correlation)
            .finish();
        let to = BasicPublishArguments::new("", reply_to);
        let answer = body.to_ascii_uppercase();
        if let Err(error) = channel.basic_publish(properties, answer, to).await {
            eprintln!("no answer: {error}");
        }
    }
}

async fn rpc() -> Outcome {
    let opened = opened().await?;
    let channel = &opened.channel;
    let q = queue(channel, "rpc", &[]).await?;
    let server = opened.another_channel().await?;
    let serving = BasicConsumeArguments::new(&q, "").auto_ack(true).finish();
    server.basic_consume(Shouting, serving).await?;
    let mut replies = consumer(channel, "amq.rabbitmq.reply-to", true).await?;
    let asking = BasicProperties::default()
        .with_reply_to("amq.rabbitmq.reply-to")
        .with_correlation_id("7")
        .finish();
    send_with(channel, &q, "question", asking).await?;
    let (_, properties, answer) = next(&mut replies).await?;
    same(
        (
            answer.as_slice(),
            properties.correlation_id().map(String::as_str),
        ),
        (b"QUESTION".as_slice(), Some("7")),
    )
}

async fn server_named() -> Outcome {
    let opened_first = opened().await?;
    let declaring = QueueDeclareArguments::exclusive_server_named();
    let declared = opened_first.channel.queue_declare(declaring).await?;
    let (q, ..) = declared.ok_or("no name")?;
    same(&q[..8], "amq.gen-")?;
    let mut other = opened().await?;
    let came = consumer(&other.channel, &q, true).await;
    other.refused(came, 405).await
}

async fn cancel() -> Outcome {
    let mut opened = opened().await?;
    let q = queue(&opened.channel, "cancel", &[]).await?;
    let consuming = BasicConsumeArguments::new(&q, "").auto_ack(true).finish();
    let (tag, mut deliveries) = opened.channel.basic_consume_rx(consuming).await?;
    opened
        .channel
        .queue_delete(QueueDeleteArguments::new(&q))
        .await?;
    same(opened.event().await?, Event::Cancelled(tag))?;
    let ended = timeout(PATIENCE, deliveries.recv()).await?.is_none();
    same(ended, true)
}

async fn stream() -> Outcome {
    let opened = opened().await?;
    let channel = &opened.channel;
    let q = name("stream");
    let declaring = QueueDeclareArguments::durable_client_named(&q)
        .arguments(table(&[("x-queue-type", text("stream"))]))
        .finish();
    channel.queue_declare(declaring).await?;
    for number in 0..10 {
        send(channel, &q, &number.to_string()).await?;
    }
    for (offset, expected) in [
        (text("first"), ["0", "1", "2"]),
        (FieldValue::l(7), ["7", "8", "9"]),
    ] {
        let reader = opened.another_channel().await?;
        reader
            .basic_qos(BasicQosArguments::new(0, 10, false))
            .await?;
        let from = BasicConsumeArguments::new(&q, "")
            .arguments(table(&[("x-stream-offset", offset)]))
            .finish();
        let (_, mut deliveries) = reader.basic_consume_rx(from).await?;
        for body in expected {
            let (delivery, _, came) = next(&mut deliveries).await?;
            reader
                .basic_ack(BasicAckArguments::new(delivery.delivery_tag(), false))
                .await?;
            same(came.as_slice(), body.as_bytes())?;
        }
        reader.close().await?;
    }
    channel.queue_delete(QueueDeleteArguments::new(&q)).await?;
    Ok(())
}

async fn large() -> Outcome {
    let opened = opened().await?;
    let channel = &opened.channel;
    let q = queue(channel, "large", &[]).await?;
    let body = "0123456789abcdef".repeat(1 << 20);
    send(channel, &q, &body).await?;
    let (_, _, came) = next(&mut consumer(channel, &q, true).await?).await?;
    same(came.len(), body.len())?;
    same(came == body.as_bytes(), true)
}

async fn tls() -> Outcome {
    let mut how = arguments(&told("AMQPS_URL"))?;
    match Connection::open(&how).await {
        Err(error) if error.to_string().contains("certificate") => (),
        Err(error) => return Err(error.into()),
        Ok(_) => return Err("connected without the authority".into()),
    }
    let authority = told("CA_FILE");
    let host = how.get_host().to_string();
    how.tls_adaptor(TlsAdaptor::without_client_auth(
        Some(Path::new(&authority)),
        host,
    )?);
    Ok(Connection::open(&how).await?.close().await?)
}

/// It does not say that it understands `authentication_failure_close`, so that the broker hangs up without a word.
async fn wrong_password() -> Outcome {
    let url = told("AMQP_URL").replace("guest:guest@", "guest:wrong@");
    match Connection::open(&arguments(&url)?).await {
        Ok(_) => Err("not refused".into()),
        Err(Error::NetworkError(_)) => Err(
            "unsupported: refused, but it does not declare authentication_failure_close: no 403"
                .into(),
        ),
        Err(error) => Err(error.into()),
    }
}

/// It does not reconnect: the program is notified of the loss and connects again.
async fn is_told(what: &str) -> Outcome {
    let mut before = opened().await?;
    let q = name(&format!("told-{what}"));
    before
        .channel
        .queue_declare(QueueDeclareArguments::durable_client_named(&q))
        .await?;
    confirming(&before.channel).await?;
    let persistent = BasicProperties::default()
        .with_delivery_mode(DELIVERY_MODE_PERSISTENT)
        .finish();
    send_with(&before.channel, &q, "kept", persistent).await?;
    let acked = Event::Acked {
        tag: 1,
        multiple: false,
    };
    same(before.event().await?, acked)?;
    ask(what).await?;
    same(before.event().await?, Event::ConnectionClosed(320))?;
    same(before.connection.is_open(), false)?;
    let after = opened().await?;
    expect(&mut consumer(&after.channel, &q, true).await?, &["kept"]).await?;
    after
        .channel
        .queue_delete(QueueDeleteArguments::new(&q))
        .await?;
    Ok(after.connection.close().await?)
}

/// One thread: with several, a connection that is closed right after a reply may not see the close's own reply, since
/// the task that reads stops at the first frame after which the connection is no longer open.
#[tokio::main(flavor = "current_thread")]
async fn main() {
    for scenario in std::env::args().skip(1) {
        let playing: std::pin::Pin<Box<dyn Future<Output = Outcome>>> = match scenario.as_str() {
            "connect" => Box::pin(connect()),
            "topology" => Box::pin(topology()),
            "confirms" => Box::pin(confirms()),
            "returns" => Box::pin(returns()),
            "consume" => Box::pin(consume()),
            "requeue" => Box::pin(requeue()),
            "dead_letter" => Box::pin(dead_letter()),
            "ttl" => Box::pin(ttl()),
            "priority" => Box::pin(priority()),
            "rpc" => Box::pin(rpc()),
            "server_named" => Box::pin(server_named()),
            "cancel" => Box::pin(cancel()),
            "stream" => Box::pin(stream()),
            "large" => Box::pin(large()),
            "tls" => Box::pin(tls()),
            "wrong_password" => Box::pin(wrong_password()),
            "forced_close" => Box::pin(is_told("CLOSE")),
            "reconnect" => Box::pin(is_told("RESTART")),
            _ => Box::pin(async { Err("unsupported: not played by this program".into()) }),
        };
        play(&scenario, playing).await;
    }
}
