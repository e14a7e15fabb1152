//! rabbitmq_http_client, which reads each answer of the HTTP API into a type of its own, with unsigned numbers of 16 to 64
//! bits: an answer with a number out of range is lost as a whole.

use players::{Outcome, ask, play, same, told};
use rabbitmq_http_client::{
    api::Client,
    commons::{PaginationParams, PolicyTarget, SupportedProtocol},
    error::HttpClientError,
};

type Api = Client<String, String, String>;

fn client() -> Api {
    let url = told("MANAGEMENT_URL");
    let (_, address) = url.rsplit_once('@').expect("credentials in MANAGEMENT_URL");
    Client::new(
        format!("http://{address}/api"),
        "guest".into(),
        "guest".into(),
    )
}

/// The calls that failed, with the part of the answer that the client could not read.
#[derive(Default)]
struct Answers {
    /// If so, lists must not be empty.
    is_in_use: bool,
    failed: Vec<String>,
}

impl Answers {
    async fn read<T>(&mut self, call: &str, came: Result<T, HttpClientError>) -> Option<T> {
        match came {
            Ok(value) => Some(value),
            Err(error) => {
                self.failed
                    .push(format!("{call}: {}", described(error).await));
                None
            }
        }
    }

    async fn list<T>(&mut self, call: &str, came: Result<Vec<T>, HttpClientError>) -> Vec<T> {
        let list = self.read(call, came).await;
        if self.is_in_use && list.as_ref().is_some_and(Vec::is_empty) {
            self.failed.push(format!("{call}: the list is empty"));
        }
        list.unwrap_or_default()
    }

    /// Read the outcome of a health check, which has a body only where it fails.
    async fn check(&mut self, call: &str, came: Result<(), HttpClientError>) {
        if !matches!(came, Err(HttpClientError::HealthCheckFailed { .. })) {
            self.read(call, came).await;
        }
    }

    /// Read an answer of a plugin that may not be there.
    async fn of_plugin<T>(&mut self, call: &str, came: Result<T, HttpClientError>) {
        if !came.as_ref().is_err_and(HttpClientError::is_not_found) {
            self.read(call, came).await;
        }
    }
}

/// Describe an error; where an answer was not understood, with its text before that place.
async fn described(error: HttpClientError) -> String {
    let HttpClientError::RequestError { error, .. } = &error else {
        return format!("{error} ({error:?})").chars().take(300).collect();
    };
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let reason = cause.to_string();
    let column = reason
        .rsplit(' ')
        .next()
        .and_then(|number| number.parse::<usize>().ok());
    let (Some(url), Some(column)) = (error.url(), column) else {
        return reason;
    };
    let again = reqwest::Client::new()
        .get(url.clone())
        .basic_auth("guest", Some("guest"));
    let Ok(answer) = again.send().await else {
        return reason;
    };
    let body = answer.bytes().await.unwrap_or_default();
    let end = column.min(body.len());
    let before = String::from_utf8_lossy(&body[end.saturating_sub(200)..end]).into_owned();
    format!("{reason}: {url}: …{before}")
}

/// `take!(list, answers, api.list_queues())`: call the client, and judge what came under the name of the call.
macro_rules! take {
    ($kind:ident, $answers:ident, $api:ident.$call:ident($($argument:expr),*)) => {
        $answers.$kind(stringify!($call), $api.$call($($argument),*).await).await
    };
}

async fn read_all(is_in_use: bool) -> Outcome {
    let api = client();
    let mut answers = Answers {
        is_in_use,
        ..Default::default()
    };
    read_node(&api, &mut answers).await;
    read_clients(&api, &mut answers).await;
    read_topology(&api, &mut answers).await;
    read_streams(&api, &mut answers).await;
    read_access(&api, &mut answers).await;
    read_definitions(&api, &mut answers).await;
    same(answers.failed.join("; "), String::new())
}

async fn read_node(api: &Api, answers: &mut Answers) {
    take!(read, answers, api.overview());
    take!(read, answers, api.server_version());
    take!(read, answers, api.current_user());
    take!(read, answers, api.get_cluster_name());
    if answers.is_in_use {
        // It does not understand the empty list that RabbitMQ shows where there are none.
        take!(read, answers, api.get_cluster_tags());
    }
    take!(read, answers, api.list_feature_flags());
    take!(read, answers, api.list_all_deprecated_features());
    take!(read, answers, api.list_deprecated_features_in_use());
    take!(read, answers, api.list_all_cluster_plugins());
    for node in take!(read, answers, api.list_nodes()).unwrap_or_default() {
        take!(read, answers, api.get_node_info(&node.name));
        take!(read, answers, api.get_node_memory_footprint(&node.name));
        take!(read, answers, api.list_node_plugins(&node.name));
        take!(read, answers, api.auth_attempts_statistics(&node.name));
    }
    take!(check, answers, api.health_check_cluster_wide_alarms());
    take!(check, answers, api.health_check_local_alarms());
    take!(
        check,
        answers,
        api.health_check_if_node_is_quorum_critical()
    );
    take!(check, answers, api.health_check_port_listener(1));
    take!(
        check,
        answers,
        api.health_check_protocol_listener(SupportedProtocol::AMQP)
    );
    take!(
        check,
        answers,
        api.health_check_protocol_listener(SupportedProtocol::STOMP)
    );
    take!(of_plugin, answers, api.schema_definition_sync_status(None));
    take!(of_plugin, answers, api.warm_standby_replication_status());
}

async fn read_clients(api: &Api, answers: &mut Answers) {
    let page = PaginationParams::first_page_default();
    for connection in take!(list, answers, api.list_connections()) {
        take!(read, answers, api.get_connection_info(&connection.name));
        take!(read, answers, api.list_channels_on(&connection.name));
    }
    for channel in take!(list, answers, api.list_channels()) {
        take!(read, answers, api.get_channel_info(&channel.name));
    }
    take!(list, answers, api.list_connections_paged(&page));
    take!(list, answers, api.list_channels_paged(&page));
    take!(list, answers, api.list_consumers());
    take!(list, answers, api.list_user_connections("guest"));
    take!(list, answers, api.list_connections_in("/"));
    take!(list, answers, api.list_channels_in("/"));
    take!(list, answers, api.list_consumers_in("/"));
}

async fn read_topology(api: &Api, answers: &mut Answers) {
    let page = PaginationParams::first_page_default();
    for queue in take!(list, answers, api.list_queues()) {
        take!(read, answers, api.get_queue_info(&queue.vhost, &queue.name));
        take!(
            read,
            answers,
            api.get_stream_info(&queue.vhost, &queue.name)
        );
        take!(
            read,
            answers,
            api.list_queue_bindings(&queue.vhost, &queue.name)
        );
    }
    for exchange in take!(list, answers, api.list_exchanges()) {
        let (vhost, name) = (
            &exchange.vhost,
            match exchange.name.as_str() {
                "" => "amq.default",
                name => name,
            },
        );
        take!(read, answers, api.get_exchange_info(vhost, name));
        take!(
            read,
            answers,
            api.list_exchange_bindings_with_source(vhost, name)
        );
        take!(
            read,
            answers,
            api.list_exchange_bindings_with_destination(vhost, name)
        );
    }
    take!(list, answers, api.list_queues_with_details());
    take!(list, answers, api.list_queues_paged(&page));
    take!(list, answers, api.list_queues_in("/"));
    take!(list, answers, api.list_queues_in_paged("/", &page));
    take!(list, answers, api.list_classic_queues());
    take!(list, answers, api.list_classic_queues_in("/"));
    take!(list, answers, api.list_quorum_queues());
    take!(list, answers, api.list_quorum_queues_in("/"));
    take!(list, answers, api.list_streams());
    take!(list, answers, api.list_streams_in("/"));
    take!(read, answers, api.list_streams_paged(&page));
    take!(read, answers, api.list_streams_in_paged("/", &page));
    take!(list, answers, api.list_exchanges_in("/"));
    take!(list, answers, api.list_exchanges_paged(&page));
    take!(list, answers, api.list_exchanges_in_paged("/", &page));
    take!(list, answers, api.list_bindings());
    take!(list, answers, api.list_bindings_in("/"));
    take!(list, answers, api.list_shovels());
    take!(list, answers, api.list_shovels_in("/"));
    take!(list, answers, api.list_federation_upstreams());
    take!(read, answers, api.list_federation_links());
}

async fn read_streams(api: &Api, answers: &mut Answers) {
    take!(of_plugin, answers, api.list_stream_connections());
    take!(of_plugin, answers, api.list_stream_connections_in("/"));
    take!(of_plugin, answers, api.list_stream_publishers());
    take!(of_plugin, answers, api.list_stream_publishers_in("/"));
    take!(of_plugin, answers, api.list_stream_consumers());
    take!(of_plugin, answers, api.list_stream_consumers_in("/"));
}

async fn read_access(api: &Api, answers: &mut Answers) {
    let page = PaginationParams::first_page_default();
    for user in take!(list, answers, api.list_users()) {
        take!(read, answers, api.get_user(&user.name));
        take!(read, answers, api.list_permissions_of(&user.name));
        take!(read, answers, api.list_topic_permissions_of(&user.name));
        take!(read, answers, api.list_user_limits(&user.name));
    }
    for vhost in take!(list, answers, api.list_vhosts()) {
        take!(read, answers, api.get_vhost(&vhost.name));
        take!(read, answers, api.list_permissions_in(&vhost.name));
        take!(read, answers, api.list_topic_permissions_in(&vhost.name));
        take!(read, answers, api.list_vhost_limits(&vhost.name));
    }
    for granted in take!(list, answers, api.list_permissions()) {
        take!(
            read,
            answers,
            api.get_permissions(&granted.vhost, &granted.user)
        );
    }
    take!(list, answers, api.list_topic_permissions());
    take!(list, answers, api.list_users_paged(&page));
    take!(list, answers, api.list_users_without_permissions());
    take!(list, answers, api.list_vhosts_paged(&page));
    take!(list, answers, api.list_all_user_limits());
    take!(list, answers, api.list_all_vhost_limits());
}

async fn read_definitions(api: &Api, answers: &mut Answers) {
    for policy in take!(list, answers, api.list_policies()) {
        take!(read, answers, api.get_policy(&policy.vhost, &policy.name));
    }
    for policy in take!(list, answers, api.list_operator_policies()) {
        take!(
            read,
            answers,
            api.get_operator_policy(&policy.vhost, &policy.name)
        );
    }
    for parameter in take!(list, answers, api.list_runtime_parameters()) {
        let (component, vhost) = (&parameter.component, &parameter.vhost);
        take!(
            list,
            answers,
            api.list_runtime_parameters_of_component(component)
        );
        take!(
            list,
            answers,
            api.list_runtime_parameters_of_component_in(component, vhost)
        );
        take!(
            read,
            answers,
            api.get_runtime_parameter(component, vhost, &parameter.name)
        );
        if component == "federation-upstream" {
            take!(
                read,
                answers,
                api.get_federation_upstream(vhost, &parameter.name)
            );
        }
    }
    for parameter in take!(read, answers, api.list_global_runtime_parameters()).unwrap_or_default()
    {
        take!(
            read,
            answers,
            api.get_global_runtime_parameter(&parameter.name)
        );
    }
    take!(list, answers, api.list_policies_in("/"));
    take!(
        list,
        answers,
        api.list_policies_for_target("/", PolicyTarget::Queues)
    );
    take!(list, answers, api.list_operator_policies_in("/"));
    take!(
        list,
        answers,
        api.list_operator_policies_for_target("/", PolicyTarget::Queues)
    );
    take!(
        read,
        answers,
        api.export_cluster_wide_definitions_as_string()
    );
    take!(read, answers, api.export_cluster_wide_definitions_as_data());
    take!(read, answers, api.export_vhost_definitions_as_data("/"));
}

/// Read everything that a new broker and a broker in use answer.
async fn connect() -> Outcome {
    read_all(false).await?;
    ask("USE").await?;
    read_all(true).await?;
    ask("LEAVE").await
}

#[tokio::main]
async fn main() {
    for scenario in std::env::args().skip(1) {
        let playing: std::pin::Pin<Box<dyn Future<Output = Outcome>>> = match scenario.as_str() {
            "connect" => Box::pin(connect()),
            _ => Box::pin(async { Err("unsupported: it reads what the HTTP API answers".into()) }),
        };
        play(&scenario, playing).await;
    }
}
