package main

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

var (
	sizes  = flag.String("n", "10000,100000", "number of memories")
	data   = flag.String("data", "", "path of locomo10.json; empty: random words")
	calls  = flag.Int("calls", 200, "searches of each kind in a round; fewer if they take more than 10 s")
	rounds = flag.Int("rounds", 3, "rounds")
	names  = flag.String("engines", "varve,bleve,fts5", "which")
	dir    = flag.String("dir", "", "folder for the stores; empty: a temporary one")
	puts   = flag.Int("puts", 10_000,
		"number of memories of the stores that measure puts with and without the word index; 0: do not measure that")
	seed = flag.Uint64("seed", 1, "seed of the texts")
	dims = flag.Int("dims", 0,
		"dimensions of the embeddings in Varve; 0: no embeddings, and no searches by words and vector together")
	worker = flag.String("worker", "", "internal: search with this engine in -dir")
)

func main() {
	flag.Parse()
	do := run
	if *worker != "" {
		do = work
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// result has the measurements of one engine at one size.
type result struct {
	build time.Duration
	index float64
	disk  float64
	heap  float64
	took  map[string][]time.Duration
}

var columns = []string{"first", "all", "both", "session", "four", "beside", "put", "like", "page", "sessions"}

func run() error {
	if err := os.MkdirAll(cmp.Or(*dir, os.TempDir()), 0o700); err != nil {
		return err
	}
	at, err := os.MkdirTemp(*dir, "finding-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(at)
	fmt.Printf("| memories | engine | build s | index B | disk B | heap MiB | %s |\n|---:|---|---:|---:|---:|---:|%s\n",
		strings.Join(columns, " | "), strings.Repeat("---:|", len(columns)))
	for _, text := range strings.Split(*sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		results := map[string]*result{}
		list := strings.Split(*names, ",")
		for _, name := range list {
			if engines[name] == nil {
				return fmt.Errorf("engine %q: there are varve, bleve, fts5 and scan", name)
			}
			results[name] = &result{took: map[string][]time.Duration{}}
			if err := results[name].fill(engines[name](), filepath.Join(at, name, text), n); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		for round := range *rounds {
			for i := range list {
				name := list[(i+round)%len(list)]
				if err := results[name].round(engines[name](), filepath.Join(at, name, text), n, round); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
		}
		for _, name := range list {
			r := results[name]
			fmt.Printf("| %d | %s | %.1f | %.0f | %.0f | %.1f |", n, name, r.build.Seconds(), r.index, r.disk, r.heap)
			for _, c := range columns {
				fmt.Print(" ", cell(r.took[c]), " |")
			}
			fmt.Println()
		}
	}
	if *puts == 0 {
		return nil
	}
	return without(at, *puts)
}

func newTexts(stream uint64) (*texts, error) {
	t := &texts{r: rand.New(rand.NewPCG(*seed, stream))}
	if *data == "" {
		return t, nil
	}
	return t, t.read(*data)
}

func id(i int) string      { return fmt.Sprintf("m-%07d", i) }
func session(i int) string { return fmt.Sprint("s", i/100) }

// fill puts n memories.
func (r *result) fill(e engine, dir string, n int) error {
	t, err := newTexts(0)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	began, bytes := time.Now(), int64(0)
	if err := e.Open(dir); err != nil {
		return err
	}
	err = e.PutAll(func(yield func(doc) bool) {
		for i := range n {
			d := doc{id(i), session(i), t.memory(), t.vector(*dims)}
			if bytes += int64(len(d.id) + len(d.session) + len(d.text)); !yield(d) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	if err := e.Close(); err != nil {
		return err
	}
	r.build = time.Since(began)
	r.index = float64(e.Index(dir, n, bytes)) / float64(n)
	r.disk = float64(onDisk(dir)) / float64(n)
	return nil
}

// round opens the engine and measures all kinds of calls, one kind after the other.
func (r *result) round(e engine, dir string, n, round int) error {
	t, err := newTexts(uint64(1 + round))
	if err != nil {
		return err
	}
	before := heap()
	if err := e.Open(dir); err != nil {
		return err
	}
	began := time.Now()
	if err := e.Search(t.query(), "", false); err != nil {
		return err
	}
	r.note("first", began)
	find := func() error { return e.Search(t.query(), "", false) }
	err = r.call("all", find)
	if v, ok := e.(interface {
		Both(query string, vector []float32) error
	}); ok && err == nil && *dims > 0 {
		err = r.call("both", func() error { return v.Both(t.query(), t.vector(*dims)) })
	}
	if err == nil {
		err = r.call("session", func() error { return e.Search(t.query(), session(t.r.IntN(n)), false) })
	}
	if err == nil {
		err = r.call("like", func() error { return e.Search(t.memory(), "", true) })
	}
	if err != nil {
		return err
	}
	if l, ok := e.(interface {
		Page(order string) error
		Sessions() error
	}); ok && err == nil {
		orders := []string{"timestamp", "-created", "-updated", "-score", "size"}
		err = r.call("page", func() error { return l.Page(orders[t.r.IntN(len(orders))]) })
		if err == nil {
			err = r.call("sessions", l.Sessions)
		}
	}
	r.heap = max(r.heap, float64(heap()-before)/(1<<20))
	if s, ok := e.(shared); ok && err == nil {
		err = r.four(s.Shared(), dir, uint64(100*(1+round)))
	}
	if w, ok := e.(writer); ok && err == nil {
		var over atomic.Bool
		done := make(chan error, 1)
		go func() {
			done <- r.write(w, n, round, &over)
		}()
		err = r.call("beside", find)
		over.Store(true)
		if werr := <-done; err == nil {
			err = werr
		}
	}
	if err != nil {
		return err
	}
	return e.Close()
}

// heap returns the size of Go's heap, without mapped files.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// write puts new memories until the time is over, and records the duration of each.
func (r *result) write(w writer, n, round int, over *atomic.Bool) error {
	t, err := newTexts(uint64(1000 + round))
	if err != nil {
		return err
	}
	var took []time.Duration
	for i := 0; !over.Load(); i++ {
		d := doc{fmt.Sprintf("new-%d-%d", round, i), session(n + i), t.memory(), t.vector(*dims)}
		began := time.Now()
		if err := w.Put(d); err != nil {
			return err
		}
		took = append(took, time.Since(began))
	}
	r.took["put"] = append(r.took["put"], took...) // nobody reads it meanwhile
	return nil
}

func (r *result) call(kind string, f func() error) error {
	first := time.Now()
	end := first.Add(10 * time.Second)
	for i := 0; i < *calls || kind == "beside" && time.Since(first) < 2*time.Second; i++ { // puts need a while
		began := time.Now()
		if began.After(end) {
			break
		}
		if err := f(); err != nil {
			return err
		}
		r.note(kind, began)
	}
	return nil
}

func (r *result) note(kind string, began time.Time) {
	r.took[kind] = append(r.took[kind], time.Since(began))
}

// cell returns the median and the 99th percentile as text.
func cell(all []time.Duration) string {
	if len(all) == 0 {
		return "–"
	}
	slices.Sort(all)
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	return fmt.Sprintf("%.3g / %.3g", ms(all[len(all)/2]), ms(all[len(all)*99/100]))
}
