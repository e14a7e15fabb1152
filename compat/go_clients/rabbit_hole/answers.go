package main

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strings"

	rabbithole "github.com/michaelklishin/rabbit-hole/v3"

	. "amqp-broker.example/clients/harness"
)

// reading calls the client, and keeps the calls whose answers it could not read.
type reading struct {
	c      *rabbithole.Client
	failed []error
}

// read keeps the error of a call, which names the field that does not have its type.
func read[T any](r *reading, call string) func(T, error) T {
	return func(value T, err error) T {
		if err != nil {
			r.failed = append(r.failed, fmt.Errorf("%s: %w", call, err))
		}
		return value
	}
}

// list reads a list that cannot be empty.
func list[T any](r *reading, call string) func([]T, error) []T {
	return func(rows []T, err error) []T {
		if err == nil && len(rows) == 0 {
			err = errors.New("the list is empty")
		}
		return read[[]T](r, call)(rows, err)
	}
}

// check reads a health check, which answers 503 with a body where it fails.
func check[T any](r *reading, call string) func(T, error) {
	return func(status T, err error) {
		if err == nil && reflect.ValueOf(status).FieldByName("Status").String() == "" {
			err = errors.New("the status is missing")
		}
		read[T](r, call)(status, err)
	}
}

// answers reads everything that the client can ask a broker in use.
func answers(c *rabbithole.Client) error {
	if err := Ask("USE"); err != nil {
		return err
	}
	r := &reading{c: c}
	r.node()
	r.clients()
	r.topology()
	r.access()
	r.definitions()
	return errors.Join(append(r.failed, Ask("LEAVE"))...)
}

func (r *reading) node() {
	read[*rabbithole.Overview](r, "Overview")(r.c.Overview())
	read[*rabbithole.WhoamiInfo](r, "Whoami")(r.c.Whoami())
	read[*rabbithole.ClusterName](r, "GetClusterName")(r.c.GetClusterName())
	read[[]string](r, "EnabledProtocols")(r.c.EnabledProtocols())
	read[map[string]rabbithole.Port](r, "ProtocolPorts")(r.c.ProtocolPorts())
	list[rabbithole.FeatureFlag](r, "ListFeatureFlags")(r.c.ListFeatureFlags())
	if _, err := r.c.ListDeprecatedFeatures(); !isMissing(err) { // RabbitMQ 3.10 has no such endpoint
		list[rabbithole.DeprecatedFeature](r, "ListDeprecatedFeatures")(r.c.ListDeprecatedFeatures())
		read[[]rabbithole.DeprecatedFeature](r, "ListDeprecatedFeaturesUsed")(r.c.ListDeprecatedFeaturesUsed())
	}
	for _, node := range list[rabbithole.NodeInfo](r, "ListNodes")(r.c.ListNodes()) {
		read[*rabbithole.NodeInfo](r, "GetNode")(r.c.GetNode(node.Name))
	}
	check[rabbithole.ResourceAlarmCheckStatus](r, "HealthCheckAlarms")(r.c.HealthCheckAlarms())
	check[rabbithole.ResourceAlarmCheckStatus](r, "HealthCheckLocalAlarms")(r.c.HealthCheckLocalAlarms())
	check[rabbithole.HealthCheckStatus](r, "HealthCheckCertificateExpiration")(r.c.HealthCheckCertificateExpiration(1, rabbithole.DAYS))
	check[rabbithole.PortListenerCheckStatus](r, "HealthCheckPortListener")(r.c.HealthCheckPortListener(1))
	// It cannot read how RabbitMQ 4.3 answers for a protocol that has no listener.
	check[rabbithole.ProtocolListenerCheckStatus](r, "HealthCheckProtocolListener")(r.c.HealthCheckProtocolListener(rabbithole.AMQP))
	check[rabbithole.HealthCheckStatus](r, "HealthCheckVirtualHosts")(r.c.HealthCheckVirtualHosts())
	check[rabbithole.HealthCheckStatus](r, "HealthCheckNodeIsQuorumCritical")(r.c.HealthCheckNodeIsQuorumCritical())
}

func (r *reading) clients() {
	page := url.Values{"page": {"1"}}
	for _, one := range list[rabbithole.ConnectionInfo](r, "ListConnections")(r.c.ListConnections()) {
		read[*rabbithole.ConnectionInfo](r, "GetConnection")(r.c.GetConnection(one.Name))
	}
	for _, one := range list[rabbithole.ChannelInfo](r, "ListChannels")(r.c.ListChannels()) {
		read[*rabbithole.ChannelInfo](r, "GetChannel")(r.c.GetChannel(one.Name))
	}
	read[rabbithole.PagedConnectionInfo](r, "PagedListConnectionsWithParameters")(r.c.PagedListConnectionsWithParameters(page))
	list[rabbithole.UserConnectionInfo](r, "ListConnectionsOfUser")(r.c.ListConnectionsOfUser("guest"))
	list[rabbithole.ConnectionInfo](r, "ListVhostConnections")(r.c.ListVhostConnections(vhost))
	list[rabbithole.ConsumerInfo](r, "ListConsumers")(r.c.ListConsumers())
	list[rabbithole.ConsumerInfo](r, "ListConsumersIn")(r.c.ListConsumersIn(vhost))
}

func (r *reading) topology() {
	page := url.Values{"page": {"1"}}
	for _, q := range list[rabbithole.QueueInfo](r, "ListQueues")(r.c.ListQueues()) {
		read[*rabbithole.DetailedQueueInfo](r, "GetQueue")(r.c.GetQueue(q.Vhost, q.Name))
		read[[]rabbithole.BindingInfo](r, "ListQueueBindings")(r.c.ListQueueBindings(q.Vhost, q.Name))
		rates := url.Values{"msg_rates_age": {"60"}, "msg_rates_incr": {"5"}, "lengths_age": {"60"}, "lengths_incr": {"5"}}
		read[*rabbithole.DetailedQueueInfo](r, "GetQueueWithParameters")(r.c.GetQueueWithParameters(q.Vhost, q.Name, rates))
	}
	for _, x := range list[rabbithole.ExchangeInfo](r, "ListExchanges")(r.c.ListExchanges()) {
		name := x.Name
		if name == "" {
			name = "amq.default"
		}
		read[*rabbithole.DetailedExchangeInfo](r, "GetExchange")(r.c.GetExchange(x.Vhost, name))
		read[[]rabbithole.BindingInfo](r, "ListExchangeBindingsWithSource")(r.c.ListExchangeBindingsWithSource(x.Vhost, name))
		read[[]rabbithole.BindingInfo](r, "ListExchangeBindingsWithDestination")(r.c.ListExchangeBindingsWithDestination(x.Vhost, name))
	}
	list[rabbithole.QueueInfo](r, "ListQueuesWithParameters")(r.c.ListQueuesWithParameters(url.Values{"sort": {"messages"}}))
	list[rabbithole.QueueInfo](r, "ListQueuesWithParametersIn")(r.c.ListQueuesWithParametersIn(vhost, url.Values{"sort": {"messages"}}))
	list[rabbithole.QueueInfo](r, "ListQueuesIn")(r.c.ListQueuesIn(vhost))
	read[rabbithole.PagedQueueInfo](r, "PagedListQueuesWithParameters")(r.c.PagedListQueuesWithParameters(page))
	read[rabbithole.PagedQueueInfo](r, "PagedListQueuesWithParametersIn")(r.c.PagedListQueuesWithParametersIn(vhost, page))
	list[rabbithole.ExchangeInfo](r, "ListExchangesIn")(r.c.ListExchangesIn(vhost))
	list[rabbithole.BindingInfo](r, "ListBindingsIn")(r.c.ListBindingsIn(vhost))
	for _, b := range list[rabbithole.BindingInfo](r, "ListBindings")(r.c.ListBindings()) {
		if b.DestinationType == "exchange" {
			list[rabbithole.BindingInfo](r, "ListExchangeBindingsBetween")(r.c.ListExchangeBindingsBetween(b.Vhost, b.Source, b.Destination))
		} else if b.Source != "" {
			list[rabbithole.BindingInfo](r, "ListQueueBindingsBetween")(r.c.ListQueueBindingsBetween(b.Vhost, b.Source, b.Destination))
		}
	}
	for _, one := range list[rabbithole.ShovelInfo](r, "ListShovels")(r.c.ListShovels()) {
		read[*rabbithole.ShovelInfo](r, "GetShovel")(r.c.GetShovel(one.Vhost, one.Name))
	}
	list[rabbithole.ShovelInfo](r, "ListShovelsIn")(r.c.ListShovelsIn(vhost))
	list[rabbithole.ShovelStatus](r, "ListShovelStatus")(r.c.ListShovelStatus(vhost))
	for _, one := range list[rabbithole.FederationUpstream](r, "ListFederationUpstreams")(r.c.ListFederationUpstreams()) {
		read[*rabbithole.FederationUpstream](r, "GetFederationUpstream")(r.c.GetFederationUpstream(one.Vhost, one.Name))
	}
	list[rabbithole.FederationUpstream](r, "ListFederationUpstreamsIn")(r.c.ListFederationUpstreamsIn(vhost))
	read[rabbithole.FederationLinkMap](r, "ListFederationLinks")(r.c.ListFederationLinks())
	read[rabbithole.FederationLinkMap](r, "ListFederationLinksIn")(r.c.ListFederationLinksIn(vhost))
}

func (r *reading) access() {
	for _, user := range list[rabbithole.UserInfo](r, "ListUsers")(r.c.ListUsers()) {
		read[*rabbithole.UserInfo](r, "GetUser")(r.c.GetUser(user.Name))
		read[[]rabbithole.PermissionInfo](r, "ListPermissionsOf")(r.c.ListPermissionsOf(user.Name))
		read[[]rabbithole.TopicPermissionInfo](r, "ListTopicPermissionsOf")(r.c.ListTopicPermissionsOf(user.Name))
		read[[]rabbithole.UserLimitsInfo](r, "GetUserLimits")(r.c.GetUserLimits(user.Name))
	}
	for _, one := range list[rabbithole.VhostInfo](r, "ListVhosts")(r.c.ListVhosts()) {
		read[*rabbithole.VhostInfo](r, "GetVhost")(r.c.GetVhost(one.Name))
		read[[]rabbithole.VhostLimitsInfo](r, "GetVhostLimits")(r.c.GetVhostLimits(one.Name))
	}
	for _, one := range list[rabbithole.PermissionInfo](r, "ListPermissions")(r.c.ListPermissions()) {
		read[rabbithole.PermissionInfo](r, "GetPermissionsIn")(r.c.GetPermissionsIn(one.Vhost, one.User))
	}
	for _, one := range list[rabbithole.TopicPermissionInfo](r, "ListTopicPermissions")(r.c.ListTopicPermissions()) {
		list[rabbithole.TopicPermissionInfo](r, "GetTopicPermissionsIn")(r.c.GetTopicPermissionsIn(one.Vhost, one.User))
	}
	list[rabbithole.UserLimitsInfo](r, "GetAllUserLimits")(r.c.GetAllUserLimits())
	list[rabbithole.VhostLimitsInfo](r, "GetAllVhostLimits")(r.c.GetAllVhostLimits())
}

func (r *reading) definitions() {
	for _, one := range list[rabbithole.Policy](r, "ListPolicies")(r.c.ListPolicies()) {
		read[*rabbithole.Policy](r, "GetPolicy")(r.c.GetPolicy(one.Vhost, one.Name))
	}
	for _, one := range list[rabbithole.OperatorPolicy](r, "ListOperatorPolicies")(r.c.ListOperatorPolicies()) {
		read[*rabbithole.OperatorPolicy](r, "GetOperatorPolicy")(r.c.GetOperatorPolicy(one.Vhost, one.Name))
	}
	list[rabbithole.Policy](r, "ListPoliciesIn")(r.c.ListPoliciesIn(vhost))
	list[rabbithole.OperatorPolicy](r, "ListOperatorPoliciesIn")(r.c.ListOperatorPoliciesIn(vhost))
	for _, one := range list[rabbithole.RuntimeParameter](r, "ListRuntimeParameters")(r.c.ListRuntimeParameters()) {
		list[rabbithole.RuntimeParameter](r, "ListRuntimeParametersFor")(r.c.ListRuntimeParametersFor(one.Component))
		list[rabbithole.RuntimeParameter](r, "ListRuntimeParametersIn")(r.c.ListRuntimeParametersIn(one.Component, one.Vhost))
		read[*rabbithole.RuntimeParameter](r, "GetRuntimeParameter")(r.c.GetRuntimeParameter(one.Component, one.Vhost, one.Name))
	}
	for _, one := range list[rabbithole.GlobalRuntimeParameter](r, "ListGlobalParameters")(r.c.ListGlobalParameters()) {
		read[*rabbithole.GlobalRuntimeParameter](r, "GetGlobalParameter")(r.c.GetGlobalParameter(one.Name))
	}
	read[*rabbithole.ExportedDefinitions](r, "ListDefinitions")(r.c.ListDefinitions())
	read[*rabbithole.ExportedDefinitions](r, "ListVhostDefinitions")(r.c.ListVhostDefinitions(vhost))
}

func isMissing(err error) bool {
	var answer rabbithole.ErrorResponse
	return errors.As(err, &answer) && answer.StatusCode == 404 || err != nil && strings.Contains(err.Error(), "404")
}
