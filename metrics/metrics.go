package metrics

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/varve-db/varve"
)

// Collector is a prometheus.Collector that reads the numbers of a store each time Prometheus collects them.
type Collector struct{ store func() *varve.Store }

// New returns a collector. The function store returns the store whose numbers are collected; it may return
// another store at each call.
func New(store func() *varve.Store) *Collector { return &Collector{store} }

// desc returns the description of a metric of this package.
func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("varve_"+name, help, labels, nil)
}

var (
	memories    = desc("memories", "Memories in the store.")
	assemblies  = desc("assemblies", "Assemblies in the store.")
	storeBytes  = desc("store_bytes", "Bytes of the files of the store.", "part")
	logBytes    = desc("log_bytes", "Bytes of log that the next open would read.")
	backlog     = desc("backlog_bytes", "Bytes of log that are not in files yet.")
	viewLag     = desc("view_lag_bytes", "Bytes of log that a view does not cover yet.", "view")
	operations  = desc("operations_total", "Calls of this process.", "operation", "result")
	durations   = desc("operation_duration_seconds", "Duration of calls of this process.", "operation")
	syncs       = desc("fsync_duration_seconds", "Duration of syncs of the log by this process.")
	lockWaits   = desc("lock_wait_seconds", "Time for which this process waited for locks of other processes.")
	flushes     = desc("flush_duration_seconds", "Duration of rounds of the flusher.")
	slowed      = desc("slowed_seconds_total", "Time by which writers were slowed so that the flusher could catch up.")
	pending     = desc("embed_pending", "Memories that wait for their vectors.")
	healthy     = desc("healthy", "1 if the store has no problems.")
	writable    = desc("writable", "1 if the store can be written.")
	problems    = desc("problems", "Problems that the store has.")
	diskFree    = desc("disk_free_bytes", "Bytes that are free on the disk of the store.")
	diskLow     = desc("disk_low_bytes", "Free bytes below which the store warns.")
	quarantined = desc("quarantined_files", "Files that were set aside.")
	processes   = desc("processes", "Processes that have the store open to write.")
	backlogMost = desc("backlog_limit_bytes", "Setting backlog_bytes; beyond half of it, writers are slowed down.")
	damaged     = desc("damaged", "Damage that is known, including what opening the store found.")
	recovered   = desc("recovered_entries", "Entries of the log that opening the store read.")
	embedderUp  = desc("embedder_up", "1 unless the last calls of the embedder failed; missing without one.")
	copyBehind  = desc("copy_behind_bytes", "Bytes of log that the copy elsewhere lacks; missing without a copy.")
	copyLag     = desc("copy_lag_seconds", "Time since all of the log was sent to the copy, 0 while it lacks nothing.")
	copySuccess = desc("copy_last_success_timestamp_seconds", "Last time that all of the log was sent, 0 if never.")
	copyFailing = desc("copy_failing", "1 if the last attempt to send failed, or no process sends.")
	backup      = desc("backup_last_success_timestamp_seconds", "Newest full backup in backups/, 0 without one.")
)

// Describe sends no descriptions, because the metrics depend on the store: the collector is unchecked.
func (c *Collector) Describe(chan<- *prometheus.Desc) {}

// patience is the maximum time for which Collect waits for the numbers of a store.
const patience = 5 * time.Second

// Collect sends the current numbers of the store.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	st := c.store()
	s, h := st.Admin().Stats(), st.Health(ctx)
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	gauge(memories, float64(s.Memories))
	gauge(assemblies, float64(s.Assemblies))
	if u, err := st.Admin().Usage(ctx); err == nil {
		gauge(storeBytes, float64(u.Bytes), "memories")
	}
	gauge(storeBytes, float64(s.IndexSize), "index")
	gauge(storeBytes, float64(s.VectorBytes), "vectors")
	gauge(storeBytes, float64(s.HistoryBytes), "history")
	gauge(logBytes, float64(s.Backlog))
	gauge(backlog, float64(s.Unflushed))
	gauge(backlogMost, float64(st.Admin().Config().Resolved().BacklogBytes))
	gauge(viewLag, float64(s.Durable-min(s.Durable, s.Spilled)), "index")
	if s.VectorsUpTo > 0 {
		gauge(viewLag, float64(s.Durable-min(s.Durable, s.VectorsUpTo)), "vectors")
	}
	for _, o := range s.Operations {
		counter(operations, float64(o.OK), o.Name, "ok")
		counter(operations, float64(o.Failed), o.Name, "error")
		histogram(to, durations, &o.Durations, o.Name)
	}
	histogram(to, syncs, &s.Syncs)
	histogram(to, lockWaits, &s.LockWaits)
	histogram(to, flushes, &s.Flushes)
	counter(slowed, s.Slowed.Sum.Seconds())
	gauge(pending, float64(h.Pending))
	gauge(healthy, truth(h.OK))
	gauge(writable, truth(h.Writable))
	gauge(problems, float64(len(h.Problems)))
	gauge(damaged, float64(damageIn(st.Admin().OpenReport(), h.Problems)))
	gauge(recovered, float64(st.Admin().OpenReport().Replayed))
	switch h.Embedder.State {
	case varve.EmbedderNone:
	case varve.EmbedderFailing, varve.EmbedderDown, varve.EmbedderProbing:
		gauge(embedderUp, 0)
	default:
		gauge(embedderUp, 1)
	}
	if h.Space.Total > 0 {
		gauge(diskFree, float64(h.Space.Free))
		gauge(diskLow, float64(h.Space.Low))
	}
	if n, err := st.Admin().Quarantine().Count(); err == nil {
		gauge(quarantined, float64(n))
	}
	gauge(processes, float64(len(s.Processes)+len(s.Elsewhere)))
	gauge(backup, timestamp(st.Admin().LastBackup()))
	if h.Copy.Follows {
		c := &h.Copy
		gauge(copyBehind, float64(c.Behind))
		gauge(copyFailing, truth(c.LastErr != "" || c.Err != nil || c.Place != "" && !c.Sending))
		if c.Place != "" {
			gauge(copySuccess, timestamp(c.Success))
			gauge(copyLag, c.Lag.Seconds())
		}
	}
}

// timestamp returns a time in seconds, 0 for the zero time.
func timestamp(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return float64(at.UnixMilli()) / 1000
}

// histogram sends a histogram. In h, the count of a bucket does not include the buckets below; histogram adds them up,
// because Prometheus expects cumulative counts.
func histogram(to chan<- prometheus.Metric, d *prometheus.Desc, h *varve.Durations, labels ...string) {
	buckets, n := map[float64]uint64{}, uint64(0)
	for i, bound := range h.Bounds {
		n += h.Counts[i]
		buckets[bound.Seconds()] = n
	}
	to <- prometheus.MustNewConstHistogram(d, h.Count(), h.Sum.Seconds(), buckets, labels...)
}

// damageIn returns the number of different errors about damage in problems and in r, the report of opening the store.
// Damage that only reading the whole store would show is not counted.
func damageIn(r *varve.OpenReport, problems []error) (n int) {
	all := append(slices.Clone(problems), r.Problems...)
	if r.Damage != nil {
		all = append(all, r.Damage)
	}
	seen := map[string]bool{}
	for _, err := range all {
		if errors.Is(err, varve.ErrCorrupt) && !seen[err.Error()] {
			seen[err.Error()] = true
			n++
		}
	}
	return n
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
