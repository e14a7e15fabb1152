// Dapr's conformance suites with its components for RabbitMQ.
//
// Upstream runs the suites with all components in one program, which needs the clients of each cloud. This program has
// the components for RabbitMQ alone; the suites and their configuration are upstream's, the latter copied to config.
package dapr

import (
	"path/filepath"
	"testing"

	"github.com/dapr/components-contrib/bindings/rabbitmq"
	pubsub "github.com/dapr/components-contrib/pubsub/rabbitmq"
	"github.com/dapr/components-contrib/tests/conformance"
	bindingsSuite "github.com/dapr/components-contrib/tests/conformance/bindings"
	pubsubSuite "github.com/dapr/components-contrib/tests/conformance/pubsub"
	"github.com/dapr/kit/logger"
)

const name = "rabbitmq"

func TestPubSub(t *testing.T) {
	listed, properties := configured(t, "pubsub")
	config, err := pubsubSuite.NewTestConfig(name, listed.Operations, listed.Config)
	check(t, err)
	pubsubSuite.ConformanceTests(t, properties, pubsub.NewRabbitMQ(logger.NewLogger(name)), config)
}

func TestBinding(t *testing.T) {
	listed, properties := configured(t, "bindings")
	config, err := bindingsSuite.NewTestConfig(name, listed.Operations, listed.Config)
	check(t, err)
	input, output := rabbitmq.NewRabbitMQ(logger.NewLogger(name)), rabbitmq.NewRabbitMQ(logger.NewLogger(name))
	bindingsSuite.ConformanceTests(t, properties, input.(*rabbitmq.RabbitMQ), output, config)
}

// configured returns what upstream's list of tests says about the component, and the component's properties.
func configured(t *testing.T, kind string) (conformance.TestComponent, map[string]string) {
	t.Helper()
	folder := filepath.Join("config", kind)
	tests, err := conformance.NewTestConfiguration(filepath.Join(folder, "tests.yml"))
	check(t, err)
	components, err := conformance.LoadComponents(filepath.Join(folder, name))
	check(t, err)
	properties, err := conformance.ConvertMetadataToProperties(components[0].Spec.Metadata)
	check(t, err)
	for _, test := range tests.Components {
		if test.Component == name {
			return test, properties
		}
	}
	t.Fatalf("upstream does not test %s", name)
	return conformance.TestComponent{}, nil
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
