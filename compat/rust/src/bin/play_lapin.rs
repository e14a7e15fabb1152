//! lapin, with consumers as streams and, where connections break, its automatic recovery.

use futures_lite::StreamExt;
use lapin::{
    BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, Consumer, Error,
    ErrorKind, ExchangeKind, Result,
    message::Delivery,
    options::*,
    runtime,
    tcp::OwnedTLSConfig,
    types::{AMQPValue, FieldTable},
};
use players::{Outcome, PATIENCE, QUIET, ask, name, play, same, told};
use tokio::time::{sleep, timeout};

async fn opened() -> Result<(Connection, Channel)> {
    let connection =
        Connection::connect(&told("AMQP_URL"), ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    Ok((connection, channel))
}

fn table(pairs: &[(&str, AMQPValue)]) -> FieldTable {
    let mut table = FieldTable::default();
    for (key, value) in pairs {
        table.insert((*key).into(), value.clone());
    }
    table
}

fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(value.into())
}

/// Declare an exclusive queue.
async fn queue(channel: &Channel, stem: &str, arguments: &[(&str, AMQPValue)]) -> Result<String> {
    let options = QueueDeclareOptions {
        exclusive: true,
        ..Default::default()
    };
    channel
        .queue_declare(name(stem).into(), options, table(arguments))
        .await?;
    Ok(name(stem))
}

async fn publish(
    channel: &Channel,
    exchange: &str,
    key: &str,
    body: &[u8],
    properties: BasicProperties,
) -> Result<Confirmation> {
    let options = BasicPublishOptions {
        mandatory: true,
        ..Default::default()
    };
    channel
        .basic_publish(exchange.into(), key.into(), options, body, properties)
        .await?
        .await
}

async fn send(channel: &Channel, queue: &str, body: &str) -> Result<Confirmation> {
    publish(
        channel,
        "",
        queue,
        body.as_bytes(),
        BasicProperties::default(),
    )
    .await
}

async fn consumer(channel: &Channel, queue: &str, no_ack: bool) -> Result<Consumer> {
    let options = BasicConsumeOptions {
        no_ack,
        ..Default::default()
    };
    channel
        .basic_consume(queue.into(), "".into(), options, FieldTable::default())
        .await
}

async fn next(
    consumer: &mut Consumer,
) -> std::result::Result<Delivery, Box<dyn std::error::Error>> {
    let came = timeout(PATIENCE, consumer.next())
        .await
        .map_err(|_| "no message came")?;
    Ok(came.ok_or("the consumer has ended")??)
}

async fn expect(consumer: &mut Consumer, bodies: &[&str]) -> Outcome {
    for body in bodies {
        same(
            String::from_utf8(next(consumer).await?.data)?,
            body.to_string(),
        )?;
    }
    Ok(())
}

/// The reply code of the broker's error.
fn code(error: &Error) -> u16 {
    match error.kind() {
        ErrorKind::ProtocolError(error) => error.get_id(),
        _ => 0,
    }
}

fn refused<T>(came: Result<T>, expected: u16) -> Outcome {
    match came {
        Ok(_) => Err(format!("not refused with {expected}").into()),
        Err(error) if code(&error) == expected => Ok(()),
        Err(error) => Err(format!("{error} instead of {expected}").into()),
    }
}

async fn connect() -> Outcome {
    let (connection, channel) = opened().await?;
    let q = queue(&channel, "connect", &[]).await?;
    let properties = BasicProperties::default()
        .with_content_type("text/plain".into())
        .with_message_id("m1".into())
        .with_headers(table(&[("n", AMQPValue::LongInt(1))]));
    publish(&channel, "", &q, b"hello", properties.clone()).await?;
    let delivery = next(&mut consumer(&channel, &q, true).await?).await?;
    same(
        (delivery.data, delivery.properties),
        (b"hello".to_vec(), properties),
    )?;
    channel.close(200, "done".into()).await?;
    Ok(connection.close(200, "done".into()).await?)
}

async fn topology() -> Outcome {
    let (connection, channel) = opened().await?;
    let (first, second, q) = (name("events"), name("archive"), name("topology"));
    let durable = ExchangeDeclareOptions {
        durable: true,
        ..Default::default()
    };
    channel
        .exchange_declare(
            first.clone().into(),
            ExchangeKind::Topic,
            durable,
            FieldTable::default(),
        )
        .await?;
    channel
        .exchange_declare(
            second.clone().into(),
            ExchangeKind::Fanout,
            durable,
            FieldTable::default(),
        )
        .await?;
    channel
        .queue_declare(
            q.clone().into(),
            QueueDeclareOptions::durable(),
            FieldTable::default(),
        )
        .await?;
    let (source, destination) = (first.clone(), second.clone());
    channel
        .exchange_bind(
            destination.clone().into(),
            source.clone().into(),
            "order.#".into(),
            Default::default(),
            FieldTable::default(),
        )
        .await?;
    channel
        .queue_bind(
            q.clone().into(),
            second.clone().into(),
            "".into(),
            Default::default(),
            FieldTable::default(),
        )
        .await?;
    publish(&channel, &first, "order.created", b"1", Default::default()).await?;
    channel
        .exchange_unbind(
            destination.into(),
            source.into(),
            "order.#".into(),
            Default::default(),
            FieldTable::default(),
        )
        .await?;
    publish(&channel, &first, "order.created", b"2", Default::default()).await?;
    channel
        .queue_unbind(
            q.clone().into(),
            second.clone().into(),
            "".into(),
            FieldTable::default(),
        )
        .await?;
    same(
        channel
            .queue_purge(q.clone().into(), Default::default())
            .await?,
        1,
    )?;
    let passive = QueueDeclareOptions {
        passive: true,
        ..Default::default()
    };
    let other = connection.create_channel().await?;
    refused(
        other
            .queue_declare(name("missing").into(), passive, FieldTable::default())
            .await,
        404,
    )?;
    let other = connection.create_channel().await?;
    refused(
        other
            .queue_declare(q.clone().into(), Default::default(), FieldTable::default())
            .await,
        406,
    )?;
    channel.queue_delete(q.into(), Default::default()).await?;
    channel
        .exchange_delete(first.into(), Default::default())
        .await?;
    Ok(channel
        .exchange_delete(second.into(), Default::default())
        .await?)
}

async fn confirms() -> Outcome {
    let (_connection, channel) = opened().await?;
    let q = queue(&channel, "confirms", &[]).await?;
    channel
        .confirm_select(ConfirmSelectOptions::default())
        .await?;
    let mut pending = Vec::new();
    for _ in 0..100 {
        let persistent = BasicProperties::default().with_delivery_mode(2);
        pending.push(
            channel
                .basic_publish(
                    "".into(),
                    q.clone().into(),
                    Default::default(),
                    b"x",
                    persistent,
                )
                .await?,
        );
    }
    for confirm in pending {
        same(timeout(PATIENCE, confirm).await??, Confirmation::Ack(None))?;
    }
    Ok(())
}

async fn returns() -> Outcome {
    let (_connection, channel) = opened().await?;
    channel
        .confirm_select(ConfirmSelectOptions::default())
        .await?;
    let confirmation = send(&channel, &name("nobody"), "lost").await?;
    let returned = confirmation.take_message().ok_or("not returned")?;
    same(
        (
            returned.reply_code,
            returned.reply_text.to_string(),
            returned.delivery.data,
        ),
        (312, "NO_ROUTE".to_string(), b"lost".to_vec()),
    )
}

async fn consume() -> Outcome {
    let (_connection, channel) = opened().await?;
    let q = queue(&channel, "consume", &[]).await?;
    for number in 0..10 {
        send(&channel, &q, &number.to_string()).await?;
    }
    channel.basic_qos(3, BasicQosOptions::default()).await?;
    let mut deliveries = consumer(&channel, &q, false).await?;
    expect(&mut deliveries, &["0", "1"]).await?;
    let last = next(&mut deliveries).await?;
    if let Ok(more) = timeout(QUIET, deliveries.next()).await {
        return Err(format!("one more than the prefetch count: {more:?}").into());
    }
    last.ack(BasicAckOptions { multiple: true }).await?;
    expect(&mut deliveries, &["3", "4", "5"]).await
}

async fn requeue() -> Outcome {
    let (_connection, channel) = opened().await?;
    let q = queue(&channel, "requeue", &[]).await?;
    let mut deliveries = consumer(&channel, &q, false).await?;
    send(&channel, &q, "again").await?;
    let first = next(&mut deliveries).await?;
    first
        .nack(BasicNackOptions {
            requeue: true,
            ..Default::default()
        })
        .await?;
    let second = next(&mut deliveries).await?;
    same((first.redelivered, second.redelivered), (false, true))
}

async fn dead_letter() -> Outcome {
    let (_connection, channel) = opened().await?;
    let (work, wait) = (name("work"), name("wait"));
    let back = |to: &str| {
        vec![
            ("x-dead-letter-exchange", text("")),
            ("x-dead-letter-routing-key", text(to)),
        ]
    };
    queue(&channel, "work", &back(&wait)).await?;
    queue(
        &channel,
        "wait",
        &[
            back(&work),
            vec![("x-message-ttl", AMQPValue::LongInt(200))],
        ]
        .concat(),
    )
    .await?;
    let mut deliveries = consumer(&channel, &work, false).await?;
    send(&channel, &work, "try").await?;
    next(&mut deliveries)
        .await?
        .reject(BasicRejectOptions { requeue: false })
        .await?;
    let retried = next(&mut deliveries).await?;
    let headers = retried.properties.headers().clone().unwrap_or_default();
    let deaths = headers
        .inner()
        .get("x-death")
        .and_then(AMQPValue::as_array)
        .ok_or("no x-death")?;
    let mut history = Vec::new();
    for death in deaths.as_slice() {
        let AMQPValue::FieldTable(death) = death else {
            return Err("no table in x-death".into());
        };
        let (queue, reason, count) = (
            death.inner().get("queue"),
            death.inner().get("reason"),
            death.inner().get("count"),
        );
        history.push((queue.cloned(), reason.cloned(), count.cloned()));
    }
    let once = Some(AMQPValue::LongLongInt(1));
    same(
        history,
        vec![
            (Some(text(&wait)), Some(text("expired")), once.clone()),
            (Some(text(&work)), Some(text("rejected")), once),
        ],
    )
}

async fn ttl() -> Outcome {
    let (_connection, channel) = opened().await?;
    let dead = queue(&channel, "dead", &[]).await?;
    let to_dead = vec![
        ("x-dead-letter-exchange", text("")),
        ("x-dead-letter-routing-key", text(&dead)),
    ];
    let mut deliveries = consumer(&channel, &dead, true).await?;
    let own = queue(&channel, "own", &to_dead).await?;
    publish(
        &channel,
        "",
        &own,
        b"own",
        BasicProperties::default().with_expiration("100".into()),
    )
    .await?;
    expect(&mut deliveries, &["own"]).await?;
    let all = queue(
        &channel,
        "all",
        &[to_dead, vec![("x-message-ttl", AMQPValue::LongInt(200))]].concat(),
    )
    .await?;
    send(&channel, &all, "all").await?;
    expect(&mut deliveries, &["all"]).await
}

async fn priority() -> Outcome {
    let (_connection, channel) = opened().await?;
    let q = queue(
        &channel,
        "priority",
        &[("x-max-priority", AMQPValue::LongInt(5))],
    )
    .await?;
    for priority in [1, 5, 3] {
        let properties = BasicProperties::default().with_priority(priority);
        publish(
            &channel,
            "",
            &q,
            priority.to_string().as_bytes(),
            properties,
        )
        .await?;
    }
    expect(&mut consumer(&channel, &q, true).await?, &["5", "3", "1"]).await
}

async fn rpc() -> Outcome {
    let (connection, channel) = opened().await?;
    let q = queue(&channel, "rpc", &[]).await?;
    let server = connection.create_channel().await?;
    let mut questions = consumer(&server, &q, true).await?;
    let mut replies = consumer(&channel, "amq.rabbitmq.reply-to", true).await?;
    let asking = BasicProperties::default()
        .with_reply_to("amq.rabbitmq.reply-to".into())
        .with_correlation_id("7".into());
    publish(&channel, "", &q, b"question", asking).await?;
    let question = next(&mut questions).await?;
    let reply_to = question
        .properties
        .reply_to()
        .clone()
        .ok_or("no reply-to")?;
    let correlation = question
        .properties
        .correlation_id()
        .clone()
        .ok_or("no correlation id")?;
    let answering = BasicProperties::default().with_correlation_id(correlation);
    publish(
        &server,
        "",
        reply_to.as_str(),
        &question.data.to_ascii_uppercase(),
        answering,
    )
    .await?;
    let answer = next(&mut replies).await?;
    same(
        (answer.data.as_slice(), answer.properties.correlation_id()),
        (b"QUESTION".as_slice(), &Some("7".into())),
    )
}

async fn server_named() -> Outcome {
    let (_connection, channel) = opened().await?;
    let options = QueueDeclareOptions {
        exclusive: true,
        ..Default::default()
    };
    let q = channel
        .queue_declare("".into(), options, FieldTable::default())
        .await?;
    same(&q.name().as_str()[..8], "amq.gen-")?;
    let (_other, other) = opened().await?;
    refused(consumer(&other, q.name().as_str(), true).await, 405)
}

async fn cancel() -> Outcome {
    let (_connection, channel) = opened().await?;
    let q = queue(&channel, "cancel", &[]).await?;
    let mut deliveries = consumer(&channel, &q, true).await?;
    channel
        .queue_delete(q.into(), QueueDeleteOptions::default())
        .await?;
    let came = timeout(PATIENCE, deliveries.next()).await?;
    if came.is_none() {
        Ok(())
    } else {
        Err(format!("{came:?} instead of the end").into())
    }
}

async fn stream() -> Outcome {
    let (connection, channel) = opened().await?;
    let q = name("stream");
    let is_stream = table(&[("x-queue-type", text("stream"))]);
    channel
        .queue_declare(q.clone().into(), QueueDeclareOptions::durable(), is_stream)
        .await?;
    channel
        .confirm_select(ConfirmSelectOptions::default())
        .await?;
    for number in 0..10 {
        send(&channel, &q, &number.to_string()).await?;
    }
    for (offset, expected) in [
        (text("first"), ["0", "1", "2"]),
        (AMQPValue::LongLongInt(7), ["7", "8", "9"]),
    ] {
        let reader = connection.create_channel().await?;
        reader.basic_qos(10, BasicQosOptions::default()).await?;
        let from = table(&[("x-stream-offset", offset)]);
        let mut deliveries = reader
            .basic_consume(q.clone().into(), "".into(), Default::default(), from)
            .await?;
        for body in expected {
            let delivery = next(&mut deliveries).await?;
            delivery.ack(BasicAckOptions::default()).await?;
            same(delivery.data.as_slice(), body.as_bytes())?;
        }
        reader.close(200, "done".into()).await?;
    }
    channel
        .queue_delete(q.into(), QueueDeleteOptions::default())
        .await?;
    Ok(())
}

async fn large() -> Outcome {
    let (_connection, channel) = opened().await?;
    let q = queue(&channel, "large", &[]).await?;
    let body = b"0123456789abcdef".repeat(1 << 20);
    publish(&channel, "", &q, &body, Default::default()).await?;
    let delivery = next(&mut consumer(&channel, &q, true).await?).await?;
    same(delivery.data.len(), body.len())?;
    if delivery.data == body {
        Ok(())
    } else {
        Err("another body came".into())
    }
}

async fn tls() -> Outcome {
    let authority = std::fs::read_to_string(told("CA_FILE"))?;
    let trusting = OwnedTLSConfig {
        identity: None,
        cert_chain: Some(authority),
    };
    let with = |config| async {
        let (url, runtime) = (told("AMQPS_URL"), runtime::default_runtime()?);
        Connection::connect_with_config(&url, ConnectionProperties::default(), config, runtime)
            .await
    };
    with(trusting).await?.close(200, "done".into()).await?;
    match with(OwnedTLSConfig::default()).await {
        Err(error) if error.to_string().to_lowercase().contains("certificate") => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => Err("connected without the authority".into()),
    }
}

async fn wrong_password() -> Outcome {
    let url = told("AMQP_URL").replace("guest:guest@", "guest:wrong@");
    refused(
        Connection::connect(&url, ConnectionProperties::default()).await,
        403,
    )
}

/// With automatic recovery the consumer continues; a publisher waits for the recovery when it notices the loss.
async fn recovers(what: &str) -> Outcome {
    let properties = ConnectionProperties::default().enable_auto_recover();
    let connection = Connection::connect(&told("AMQP_URL"), properties).await?;
    let (channel, reader) = (
        connection.create_channel().await?,
        connection.create_channel().await?,
    );
    let q = name(&format!("recovers-{what}"));
    channel
        .queue_declare(
            q.clone().into(),
            QueueDeclareOptions::durable(),
            FieldTable::default(),
        )
        .await?;
    channel
        .confirm_select(ConfirmSelectOptions::default())
        .await?;
    publish(
        &channel,
        "",
        &q,
        b"kept",
        BasicProperties::default().with_delivery_mode(2),
    )
    .await?;
    ask(what).await?;
    let mut deliveries = loop {
        match consumer(&reader, &q, true).await {
            Ok(deliveries) => break deliveries,
            Err(error) if error.can_be_recovered() => reader.wait_for_recovery(error).await?,
            Err(error) => return Err(error.into()),
        }
    };
    expect(&mut deliveries, &["kept"]).await?;
    while let Err(error) = send(&channel, &q, "after").await {
        channel.wait_for_recovery(error).await?;
        sleep(QUIET).await;
    }
    expect(&mut deliveries, &["after"]).await?;
    channel
        .queue_delete(q.into(), QueueDeleteOptions::default())
        .await?;
    Ok(connection.close(200, "done".into()).await?)
}

#[tokio::main]
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
            "forced_close" => Box::pin(recovers("CLOSE")),
            "reconnect" => Box::pin(recovers("RESTART")),
            _ => Box::pin(async { Err("unsupported: not played by this program".into()) }),
        };
        play(&scenario, playing).await;
    }
}
