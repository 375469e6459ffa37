package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/varve-db/varve/bench/internal/children"
)

// A steady cell is one engine under one load that does not let up, for minutes. Its workers are
// processes of their own; what they tell is kept in a file, and a cell whose file is there, of the same
// length and with as many documents, is not run again: a run that was cut goes on where it was.

// steadyLoad is what each goroutine of each process does.
type steadyLoad struct {
	name       string
	title      string
	processes  int
	goroutines int
	fill       bool // the store is filled with documents before the load
	// Interval at which each goroutine begins an operation; durations are measured from the planned beginning. 0: one
	// operation after the other.
	every time.Duration
	step  func(w *steadyWorker, g int) (docs int, kind string, err error)
}

var steadyLoads = []steadyLoad{
	{"paced", "2,000 puts a second, by 16 goroutines", 1, 16, false, 8 * time.Millisecond, (*steadyWorker).put},
	{"put1", "1 writer", 1, 1, false, 0, (*steadyWorker).put},
	{"put64", "64 writers", 1, 64, false, 0, (*steadyWorker).put},
	{"batch1000", "batches of 1,000", 1, 1, false, 0, (*steadyWorker).batch},
	{"put4x16", "4 processes of 16 writers", 4, 16, false, 0, (*steadyWorker).put},
	{"read90", "16 goroutines, 90 % skewed reads", 1, 16, true, 0, (*steadyWorker).readMostly},
	{"mixed", "4 processes of 16: reads, puts, batches", 4, 16, true, 0, (*steadyWorker).mixed},
}

// steadyLoadOf returns the load with a name, or nil.
func steadyLoadOf(name string) *steadyLoad {
	for i := range steadyLoads {
		if steadyLoads[i].name == name {
			return &steadyLoads[i]
		}
	}
	return nil
}

// steadyConfig has the settings of -steady.
type steadyConfig struct {
	config
	results  string // folder for the results of the cells
	minutes  float64
	minutesX float64 // length of a cell with the mixed load, in minutes
	profile  string  // file for the CPU profile of the first process of each cell
}

// cellResult is the stored result of a cell: one load of one engine.
type cellResult struct {
	Engine  string    `json:"engine"`
	Load    string    `json:"load"`
	Title   string    `json:"title"`
	Seconds float64   `json:"seconds"`
	N       int       `json:"n"` // number of documents at the start, for a load that begins with some
	At      time.Time `json:"at"`
	// The limits of the machine, before and after the cell: an append of 1 KB followed by an fdatasync.
	SyncBefore [2]float64 `json:"sync_before_us"` // median and 99th percentile
	SyncAfter  [2]float64 `json:"sync_after_us"`
	Timeline   timeline   `json:"timeline"`
}

func (c *steadyConfig) run() error {
	if err := os.MkdirAll(c.results, 0o755); err != nil {
		return err
	}
	for _, load := range steadyLoads {
		if len(c.only) > 0 && !slices.Contains(c.only, load.name) {
			continue
		}
		for _, make := range c.engines {
			e := make()
			if load.processes > 1 && !e.MultiProcess() || load.name == "mixed" && !strings.HasPrefix(e.Name(), "Varve") {
				continue
			}
			path := filepath.Join(c.results, cellName(e.Name(), load.name))
			if was,
				err := readCell(path); err == nil && was.Seconds == c.secondsOf(load) && was.N == c.fillOf(load) &&
				was.Timeline.Reads != nil {
				fmt.Fprintln(os.Stderr, path, "exists already")
				continue
			}
			if err := c.cell(e.Name(), load, path); err != nil {
				return fmt.Errorf("%s of %s: %w", load.name, e.Name(), err)
			}
		}
	}
	return c.reportSteady()
}

func cellName(engine, load string) string {
	clean := func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}
	return strings.Map(clean, strings.ToLower(engine)) + "." + load + ".json"
}

func (c *steadyConfig) cell(engine string, load steadyLoad, path string) error {
	return c.inFolder(func(dir string) error {
		r := cellResult{Engine: engine, Load: load.name, Title: load.title, At: time.Now().UTC().Truncate(time.Second)}
		r.Seconds, r.N = c.secondsOf(load), c.fillOf(load)
		var err error
		if r.SyncBefore, err = c.syncProbe(); err != nil {
			return err
		}
		if r.Timeline, err = c.runWorkers(engine, load, dir, r.Seconds); err != nil {
			return err
		}
		if r.SyncAfter, err = c.syncProbe(); err != nil {
			return err
		}
		b, err := json.Marshal(&r)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%s: %s\n", path, r.Timeline.line(r.Seconds))
		if err := os.WriteFile(path+".part", b, 0o644); err != nil {
			return err
		}
		return os.Rename(path+".part", path)
	})
}

func (c *steadyConfig) secondsOf(load steadyLoad) float64 {
	if load.name == "mixed" {
		return c.minutesX * 60
	}
	return c.minutes * 60
}

func (c *steadyConfig) fillOf(load steadyLoad) int {
	if load.fill {
		return c.n
	}
	return 0
}

func readCell(path string) (r cellResult, err error) {
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return r, err
}

func (c *steadyConfig) syncProbe() (quantiles [2]float64, err error) {
	err = c.inFolder(func(dir string) error {
		b, err := syncLimit(dir, 2*time.Second)
		quantiles = [2]float64{b.p50, b.p99}
		return err
	})
	return quantiles, err
}

// runWorkers starts the processes of a cell, lets them begin together, and adds up their measurements.
func (c *steadyConfig) runWorkers(engine string, load steadyLoad, dir string,
	seconds float64) (sum timeline, err error) {
	var all children.Children
	defer func() { err = all.Close(err) }()
	for i := range load.processes {
		args := []string{"-steadyworker", load.name, "-engines", engine, "-dir", dir, "-n", strconv.Itoa(c.n), "-seconds",
			strconv.FormatFloat(seconds, 'f', -1, 64), "-seed", strconv.Itoa(i + 1)}
		if c.profile != "" && i == 0 {
			args = append(args, "-cpuprofile", c.profile)
		}
		if err := all.Start(args...); err != nil {
			return sum, err
		}
		if err := all.AwaitReady(); err != nil { // one after the other: the first one fills the store
			return sum, err
		}
	}
	if err := all.Begin(strconv.FormatInt(time.Now().UnixNano(), 10)); err != nil {
		return sum, err
	}
	err = children.ResultsOf(&all, func(t timeline) { sum.add(&t) })
	return sum, err
}

// timeline has the measurements of each second of a cell.
type timeline struct {
	Docs   []int              `json:"docs"` // documents committed in each second
	Reads  []int              `json:"reads"`
	Ops    []int              `json:"ops"`    // number of commits in each second
	P50    []float64          `json:"p50_us"` // median latency of the commits that ended in each second
	P99    []float64          `json:"p99_us"`
	Most   []float64          `json:"most_us"`
	Kinds  map[string]latency `json:"kinds"`  // latencies of all seconds, by kind of operation
	Marks  []mark             `json:"marks"`  // background work of the engine
	Levels map[string][]int64 `json:"levels"` // levels of the engine, one value per second
	lat    []latency          // latencies of the commits that ended in each second
}

// mark is one piece of background work of an engine.
type mark struct {
	At   float64 `json:"at"` // seconds since the beginning
	Kind string  `json:"kind"`
	Took float64 `json:"took_ms"`
}

// latency counts the durations of operations, in steps of 2 %.
type latency map[int]int

const latencyStep = 1.02

func (l latency) note(d time.Duration) { l[int(math.Log(float64(max(d, 1)))/math.Log(latencyStep))]++ }

func (l latency) merge(o latency) {
	for k, n := range o {
		l[k] += n
	}
}

func (l latency) count() (n int) {
	for _, k := range l {
		n += k
	}
	return n
}

// at returns a quantile, in microseconds; the quantile 1 is the maximum.
func (l latency) at(q float64) float64 {
	left := int(q * float64(l.count()))
	keys := make([]int, 0, len(l))
	for k := range l {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for i, k := range keys {
		if left -= l[k]; left < 0 || i == len(keys)-1 {
			return math.Pow(latencyStep, float64(k)+0.5) / 1e3
		}
	}
	return 0
}

func newTimeline(seconds int) *timeline {
	t := &timeline{Docs: make([]int, seconds), Reads: make([]int, seconds), Ops: make([]int, seconds),
		Kinds: map[string]latency{}, Levels: map[string][]int64{}, lat: make([]latency, seconds)}
	for i := range t.lat {
		t.lat[i] = latency{}
	}
	return t
}

// MarshalJSON adds the quantiles of each second; the durations from which they are computed stay in the process.
func (t *timeline) MarshalJSON() ([]byte, error) {
	type plain timeline
	p := plain(*t)
	if p.P50 == nil {
		for _, l := range t.lat {
			p.P50, p.P99, p.Most = append(p.P50, l.at(0.5)), append(p.P99, l.at(0.99)), append(p.Most, l.at(1))
		}
	}
	return json.Marshal(&p)
}

// add adds the measurements of another process. Each quantile of a second is then the greatest among the processes.
func (t *timeline) add(o *timeline) {
	if t.Docs == nil {
		*t = *o
		return
	}
	for i := range min(len(t.Docs), len(o.Docs)) {
		t.Docs[i] += o.Docs[i]
		t.Reads[i] += o.Reads[i]
		t.Ops[i] += o.Ops[i]
		t.P50[i], t.P99[i], t.Most[i] = max(t.P50[i], o.P50[i]), max(t.P99[i], o.P99[i]), max(t.Most[i], o.Most[i])
	}
	t.addKinds(o)
	t.Marks = append(t.Marks, o.Marks...)
}

func (t *timeline) addKinds(o *timeline) {
	for kind, l := range o.Kinds {
		if t.Kinds[kind] == nil {
			t.Kinds[kind] = latency{}
		}
		t.Kinds[kind].merge(l)
	}
}

// writes returns the latency of operations that write.
func (t *timeline) writes() latency {
	sum := latency{}
	for kind, l := range t.Kinds {
		if kind != "get" {
			sum.merge(l)
		}
	}
	return sum
}

// idle returns the number of seconds in which no commit ended.
func (t *timeline) idle() (n int) {
	for _, ops := range t.Ops {
		if ops == 0 {
			n++
		}
	}
	return n
}

// perSecond returns the mean per second.
func perSecond(list []int) float64 {
	sum := 0
	for _, n := range list {
		sum += n
	}
	return float64(sum) / float64(max(len(list), 1))
}

func (t *timeline) line(seconds float64) string {
	l := t.writes()
	reads := ""
	if l := t.Kinds["get"]; len(l) > 0 {
		reads = fmt.Sprintf(", %s gets/s, p50 %s µs, p99 %s µs", number(perSecond(t.Reads)), number(l.at(0.5)),
			number(l.at(0.99)))
	}
	return fmt.Sprintf("%.0f s, %s docs/s, p50 %s µs, p99 %s µs, p99.9 %s µs, longest %s ms, %d seconds without a commit%s",
		seconds, number(perSecond(t.Docs)), number(l.at(0.5)), number(l.at(0.99)), number(l.at(0.999)), number(l.at(1)/1e3),
		t.idle(), reads)
}
