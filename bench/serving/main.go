package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/varve-db/varve"
)

type options struct {
	memctl  string
	n, size int
	each    time.Duration
	clients string
	dir     string
}

func main() {
	var o options
	flag.StringVar(&o.memctl, "memctl", "", "the `program`; it is built if none is named")
	flag.IntVar(&o.n, "n", 10_000, "notes and memories in the store")
	flag.IntVar(&o.size, "size", 1000, "bytes of each note and memory")
	flag.DurationVar(&o.each, "each", 5*time.Second, "duration of the calls of each kind")
	flag.StringVar(&o.clients, "clients", "1,50", "comma-separated numbers of clients")
	flag.StringVar(&o.dir, "dir", "", "folder on the disk that is measured; a temporary one by default")
	flag.Parse()
	log.SetFlags(0)
	if err := run(context.Background(), &o); err != nil {
		log.Fatal(err)
	}
}

// target is a store that is measured, with or without a server. Each call gets the number i of the client that makes
// it.
type target interface {
	create(ctx context.Context, i, n int, content string) error
	get(ctx context.Context, i, n int) error
	update(ctx context.Context, i, n int, content string) error
	list(ctx context.Context, i int) error
	search(ctx context.Context, i int, words string) error
}

func run(ctx context.Context, o *options) (err error) {
	dir, err := os.MkdirTemp(o.dir, "varve-bench-serving-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if o.memctl == "" {
		o.memctl = filepath.Join(dir, "memctl")
		build := exec.CommandContext(ctx, "go", "build", "-o", o.memctl, "./cmd/memctl")
		build.Dir = ".."
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building memctl: %w\n%s", err, out)
		}
	}
	for _, name := range []string{"library", "served"} {
		if err := fill(ctx, filepath.Join(dir, name), o); err != nil {
			return err
		}
	}
	st, err := varve.Open(ctx, filepath.Join(dir, "library"), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	s, err := serve(ctx, o.memctl, filepath.Join(dir, "served"), dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	if err := s.learn(ctx, o.n); err != nil {
		return err
	}
	fmt.Printf("%d notes and memories of %d bytes; calls a second, median, 99th percentile in ms\n", o.n, o.size)
	fmt.Printf("%-8s %7s %28s %28s\n", "", "clients", "library", "memctl serve")
	for text := range strings.SplitSeq(o.clients, ",") {
		clients, err := strconv.Atoi(text)
		if err != nil || clients < 1 || clients > mostClients {
			return fmt.Errorf("-clients %s: numbers from 1 to %d", o.clients, mostClients)
		}
		for _, kind := range []string{"create", "get", "update", "list", "search"} {
			fmt.Printf("%-8s %7d", kind, clients)
			for _, t := range []target{library{st}, s} {
				took, calls, err := measure(ctx, t, kind, clients, o)
				if err != nil {
					return fmt.Errorf("%s: %w", kind, err)
				}
				slices.Sort(took)
				fmt.Printf(" %11.0f/s %6.2f %7.2f", float64(calls)/o.each.Seconds(), ms(took[len(took)/2]),
					ms(took[len(took)*99/100]))
			}
			fmt.Println()
		}
	}
	return nil
}

// mostClients is the maximum number of clients.
const mostClients = 1000

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// fill creates a store with notes and memories.
func fill(ctx context.Context, dir string, o *options) (err error) {
	st, err := varve.Open(ctx, dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	var all sync.WaitGroup
	var next atomic.Int64
	var failed atomic.Value
	for range 32 {
		all.Go(func() {
			for n := int(next.Add(1) - 1); n < o.n; n = int(next.Add(1) - 1) {
				if _, err := st.Notes().Write(ctx, pathOf(n), []byte(textOf(n, o.size))); err != nil {
					failed.Store(err)
					return
				}
				if _, err := st.Put(ctx, varve.Memory{Content: textOf(n, o.size)}); err != nil {
					failed.Store(err)
					return
				}
			}
		})
	}
	all.Wait()
	if err, ok := failed.Load().(error); ok {
		return err
	}
	return st.Flush(ctx)
}

func pathOf(n int) string { return fmt.Sprintf("folder-%04d/note-%02d.md", n/100, n%100) }

// textOf returns a text whose words are numbers of a few digits, some of which are in many texts and others in few.
func textOf(n, size int) string {
	var b strings.Builder
	for x := uint64(n)*0x9e3779b97f4a7c15 + 1; b.Len() < size; x = x*6364136223846793005 + 1442695040888963407 {
		fmt.Fprintf(&b, "w%d ", (x>>33)%(1<<(4+x>>60)))
	}
	return b.String()
}

// measure makes calls of one kind until the time is over.
func measure(ctx context.Context, t target, kind string, clients int, o *options) (took []time.Duration, calls int,
	err error) {
	ended := time.Now().Add(o.each)
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			var own []time.Duration
			var failed error
			for n := i; time.Now().Before(ended) && failed == nil; n += 7919 {
				began := time.Now()
				switch at := n % o.n; kind {
				case "create":
					failed = t.create(ctx, i, n, textOf(n, o.size))
				case "get":
					failed = t.get(ctx, i, at)
				case "update":
					failed = t.update(ctx, i, at, textOf(n+o.n, o.size))
				case "list":
					failed = t.list(ctx, i)
				default:
					failed = t.search(ctx, i, fmt.Sprintf("w%d w%d", n%97, n%1021))
				}
				own = append(own, time.Since(began))
			}
			mu.Lock()
			defer mu.Unlock()
			took, err = append(took, own...), errors.Join(err, failed)
		})
	}
	all.Wait()
	return took, len(took), err
}

// library is a store that is used without a server.
type library struct{ st *varve.Store }

// created counts the paths that were used, so that the paths of all runs differ.
var created atomic.Int64

func (l library) create(ctx context.Context, _, _ int, content string) error {
	_, err := l.st.Notes().Write(ctx, fmt.Sprintf("new/%d.md", created.Add(1)), []byte(content), varve.IfAbsent())
	return err
}

func (l library) get(ctx context.Context, _, n int) error {
	_, err := l.st.Notes().Read(ctx, pathOf(n))
	return err
}

func (l library) update(ctx context.Context, _, n int, content string) error {
	for {
		was, err := l.st.Notes().Read(ctx, pathOf(n))
		if err != nil {
			return err
		}
		_, err = l.st.Notes().Update(ctx, pathOf(n), "", []byte(content), varve.IfHash(was.ContentHash))
		if !errors.Is(err, varve.ErrConflict) {
			return err
		}
	}
}

func (l library) list(ctx context.Context, _ int) error {
	n := 0
	for _, err := range l.st.Notes().List(ctx, "", 0) {
		if n++; err != nil || n == 100 {
			return err
		}
	}
	return nil
}

func (l library) search(ctx context.Context, _ int, words string) error {
	_, err := l.st.Search(ctx, varve.Query{Text: words, Limit: 10})
	return err
}
