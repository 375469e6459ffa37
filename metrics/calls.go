package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Calls counts the requests of the clients of an MCP server. The caller must set Options.Observe of package mcpserver
// to a function that calls Calls.Observe.
type Calls struct{ durations *prometheus.HistogramVec }

// NewCalls returns a collector for the requests of a server.
func NewCalls() *Calls {
	return &Calls{prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "mcp_server_operation_duration_seconds", Help: "Duration of requests of clients.",
		Buckets: []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
	}, []string{"mcp_method_name", "gen_ai_tool_name", "error_type"})}
}

// Observe counts a request. method, tool and kind are the fields Method, Tool and Error of an
// mcpserver.Operation; took is the duration.
func (c *Calls) Observe(method, tool, kind string, took time.Duration) {
	c.durations.WithLabelValues(method, tool, kind).Observe(took.Seconds())
}

// Describe implements prometheus.Collector.
func (c *Calls) Describe(to chan<- *prometheus.Desc) { c.durations.Describe(to) }

// Collect implements prometheus.Collector.
func (c *Calls) Collect(to chan<- prometheus.Metric) { c.durations.Collect(to) }
