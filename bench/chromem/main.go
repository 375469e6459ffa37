package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := command(); err != nil {
		fmt.Fprintln(os.Stderr, "chromem:", err)
		os.Exit(1)
	}
}

func command() error {
	sizes := flag.String("n", "1000,10000", "comma-separated numbers of `documents`")
	d := flag.Int("d", 384, "`dimensions`")
	rounds := flag.Int("rounds", 3, "`rounds`")
	seed := flag.Uint64("seed", 1, "`seed` of the documents")
	dir := flag.String("dir", ".data", "`folder` for the stores, which are removed at the end")
	flag.Parse()
	if flag.NArg() > 0 || *rounds < 1 || *d < 1 {
		return fmt.Errorf("usage: chromem [-n 1000,10000] [-d 384] [-rounds 3] [-seed 1] [-dir DIR]")
	}
	if err := os.MkdirAll(*dir, 0o700); err != nil {
		return err
	}
	work, err := os.MkdirTemp(*dir, "chromem-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	fmt.Printf("seed %d, %d dimensions, %d rounds; %s, %d cores, %s, chromem-go %s\n", *seed, *d, *rounds, runtime.GOARCH,
		runtime.NumCPU(), runtime.Version(), version())
	for _, s := range strings.Split(*sizes, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < nearest {
			return fmt.Errorf("-n %s: a number of at least %d", s, nearest)
		}
		if err := measure(filepath.Join(work, s), documents(*seed, n, *d), *rounds, *seed); err != nil {
			return err
		}
	}
	return losses(filepath.Join(work, "losses"), *seed, *d)
}

// version returns the version of chromem-go in this program.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range info.Deps {
		if m.Path == "github.com/philippgille/chromem-go" {
			return m.Version
		}
	}
	return "unknown"
}

// numbers has the measurements of one way of use, by column, one value per round.
type numbers map[string][]float64

func measure(dir string, docs []document, rounds int, seed uint64) error {
	ways := []engine{&chromemStore{workers: 1}, &chromemStore{workers: 64}, &varveStore{workers: 1},
		&varveStore{workers: 64}, &varveStore{}}
	all := make([]numbers, len(ways))
	for i := range all {
		all[i] = numbers{}
	}
	queries := documents(seed+1, 100, len(docs[0].vector))
	for round := range rounds {
		var found [][]hit
		for k := range ways {
			i := k
			if round%2 == 1 {
				i = len(ways) - 1 - k
			}
			at := filepath.Join(dir, fmt.Sprint(round, "-", i))
			if err := added(ways[i], at, docs, all[i]); err != nil {
				return fmt.Errorf("%s: %w", ways[i].name(), err)
			}
			if i != 0 && i != len(ways)-1 {
				continue // the same store, made another way
			}
			hits, err := asked(ways[i], at, queries, all[i])
			if err != nil {
				return fmt.Errorf("%s: %w", ways[i].name(), err)
			}
			for j := range found {
				if !same(found[j], hits[j]) {
					return fmt.Errorf("query %d: the two databases find different documents: %v and %v",
						j, found[j], hits[j])
				}
			}
			found = hits
		}
	}
	fmt.Printf("\n%d documents\n\n| | add, docs/s | settled, docs/s |\n|---|---:|---:|\n", len(docs))
	for i, w := range ways {
		fmt.Printf("| %s | %s | %s |\n", w.name(), all[i].cell("add", 0), all[i].cell("settled", 0))
	}
	fmt.Print("\n| | open, ms | first, ms | query, ms | heap, MiB | disk, MiB |\n|---|---:|---:|---:|---:|---:|\n")
	for _, i := range []int{0, len(ways) - 1} {
		name, _, _ := strings.Cut(ways[i].name(), ",")
		fmt.Printf("| %s |", name)
		for _, column := range []string{"open", "first", "query", "heap", "disk"} {
			fmt.Printf(" %s |", all[i].cell(column, 2))
		}
		fmt.Println()
	}
	return nil
}

// added measures adding all documents to a new store.
func added(e engine, dir string, docs []document, to numbers) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := e.open(dir); err != nil {
		return err
	}
	if err := syncFiles(dir); err != nil { // what others left is not charged to it
		return err
	}
	runtime.GC()
	began := time.Now()
	if err := e.add(docs); err != nil {
		return err
	}
	took := time.Since(began)
	if err := e.settle(); err != nil {
		return err
	}
	settled := time.Since(began)
	to["add"] = append(to["add"], float64(len(docs))/took.Seconds())
	to["settled"] = append(to["settled"], float64(len(docs))/settled.Seconds())
	if n, err := e.count(); err != nil || n != len(docs) {
		return fmt.Errorf("%d of %d documents: %w", n, len(docs), err)
	}
	return e.close()
}

// asked opens a store and measures queries for half a second, but each query at least once. It returns the hits of
// each query.
func asked(e engine, dir string, queries []document, to numbers) (found [][]hit, err error) {
	before := heap()
	began := time.Now()
	if err := e.open(dir); err != nil {
		return nil, err
	}
	to["open"] = append(to["open"], ms(time.Since(began)))
	var times []float64
	for end := time.Now().Add(time.Second / 2); len(times) < len(queries) || time.Now().Before(end); {
		i := len(times)
		began := time.Now()
		hits, err := e.query(queries[i%len(queries)].vector)
		if err != nil {
			return nil, err
		}
		times = append(times, ms(time.Since(began)))
		if i < len(queries) {
			found = append(found, hits)
		}
	}
	to["first"] = append(to["first"], times[0])
	to["query"] = append(to["query"], median(times[1:]))
	to["heap"] = append(to["heap"], heap()-before)
	bytes, err := diskUse(dir)
	if err != nil {
		return nil, err
	}
	to["disk"] = append(to["disk"], bytes/(1<<20))
	return found, e.close()
}

// heap returns the heap in use, in MiB.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

func (n numbers) cell(column string, digits int) string {
	list := slices.Clone(n[column])
	m := median(list)
	return fmt.Sprintf("**%.*f** (%.*f–%.*f)", digits, m, digits, list[0], digits, list[len(list)-1])
}

// median sorts the values and returns their median; for an even number of values it is the lower of the middle two.
func median(list []float64) float64 {
	slices.Sort(list)
	return list[(len(list)-1)/2]
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }
