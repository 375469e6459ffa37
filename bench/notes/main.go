package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

type options struct {
	n, size, calls, rounds, writers int
	seed                            uint64
	dir                             string
}

const (
	perFolder = 100
	smallSize = 1000 // number of notes for the first table
	marker    = "revision "
)

func main() {
	var o options
	flag.IntVar(&o.n, "n", 100_000, "number of notes for the second table; 0 omits the table")
	flag.IntVar(&o.size, "size", 2000, "bytes of a note")
	flag.IntVar(&o.calls, "calls", 300, "calls of each kind in a round")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds")
	flag.IntVar(&o.writers, "writers", 8, "number of goroutines that write at the same time")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the texts")
	flag.StringVar(&o.dir, "dir", "", "folder on the disk that is measured; a temporary one by default")
	flag.Parse()
	log.SetFlags(0)
	if err := run(&o); err != nil {
		log.Fatal(err)
	}
}

func run(o *options) (err error) {
	dir, err := os.MkdirTemp(o.dir, "varve-bench-notes-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	texts := newTexts(o)
	fmt.Printf("one note of %d bytes at a time, among %d notes (ms: median, 99th percentile)\n", o.size, smallSize)
	if err := calls(o, filepath.Join(dir, "calls"), texts); err != nil {
		return err
	}
	if o.n == 0 {
		return nil
	}
	fmt.Printf("\n%d notes (ms: median of the rounds)\n", o.n)
	return many(o, filepath.Join(dir, "many"), texts)
}

// texts generates the contents of notes.
type texts struct {
	size  int
	words []string
	zipf  *rand.Zipf
}

func newTexts(o *options) *texts {
	rng := rand.New(rand.NewPCG(o.seed, 0x6e6f7465))
	t := &texts{size: o.size, zipf: rand.NewZipf(rng, 1.1, 1, 4999)}
	for range 5000 {
		word := make([]byte, 3+rng.IntN(8))
		for i := range word {
			word[i] = byte('a' + rng.IntN(26))
		}
		t.words = append(t.words, string(word))
	}
	return t
}

// text returns a note with a heading of its own. The marker occurs in the note once, followed by a number.
func (t *texts) text(path string, number int) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s%d.\n", path, marker, number)
	for n := 1; b.Len() < t.size; n++ {
		b.WriteString(t.words[t.zipf.Uint64()])
		b.WriteByte(" \n"[(n%10)/9])
	}
	return []byte(b.String())
}

func paths(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("folder-%04d/note-%02d.md", i/perFolder, i%perFolder)
	}
	return list
}

// opened opens each engine in its own folder, filled with notes.
func opened(o *options, dir string, list []string, t *texts) (all []engine, contents [][]byte, err error) {
	for i, path := range list {
		contents = append(contents, t.text(path, i))
	}
	for _, e := range engines() {
		if err := e.open(filepath.Join(dir, e.name())); err != nil {
			return all, nil, fmt.Errorf("%s: %w", e.name(), err)
		}
		all = append(all, e)
		if err := e.fill(list, func(i int) []byte { return contents[i] }); err != nil {
			return all, nil, fmt.Errorf("%s: %w", e.name(), err)
		}
	}
	return all, contents, nil
}

func closeAll(all []engine) (err error) {
	for _, e := range all {
		err = errors.Join(err, e.close())
	}
	return err
}

// calls measures single calls, one after the other.
func calls(o *options, dir string, t *texts) (err error) {
	list := paths(smallSize)
	all, contents, err := opened(o, dir, list, t)
	defer func() { err = errors.Join(err, closeAll(all)) }()
	if err != nil {
		return err
	}
	number := make([]int, len(list)) // of the marker in each note, the same in all engines
	for i := range number {
		number[i] = i
	}
	took := map[string][][]time.Duration{} // by kind of call and engine
	rates := make([][]float64, len(all))
	for _, kind := range []string{"write", "edit", "read"} {
		took[kind] = make([][]time.Duration, len(all))
	}
	rng := rand.New(rand.NewPCG(o.seed, 1))
	last := len(list)
	for range o.rounds {
		for _, kind := range []string{"write", "edit", "read"} {
			for range o.calls {
				i := rng.IntN(len(list))
				last++
				from, to := fmt.Sprint(marker, number[i], ".\n"), fmt.Sprint(marker, last, ".\n")
				if kind == "write" {
					contents[i] = t.text(list[i], last)
				}
				if kind != "read" {
					number[i] = last
				}
				for k, e := range all {
					began := time.Now()
					var err error
					switch kind {
					case "write":
						err = e.write(list[i], contents[i])
					case "edit":
						err = e.edit(list[i], from, to)
					case "read":
						_, err = e.read(list[i])
					}
					if err != nil {
						return fmt.Errorf("%s: %s: %w", e.name(), kind, err)
					}
					took[kind][k] = append(took[kind][k], time.Since(began))
				}
			}
		}
		for k, e := range all {
			n := o.calls * o.writers / 2
			began := time.Now()
			err := each(o.writers, n, func(i int) error { return e.write(fmt.Sprintf("w/%d", i), contents[i%len(list)]) })
			if err != nil {
				return fmt.Errorf("%s: writers: %w", e.name(), err)
			}
			rates[k] = append(rates[k], float64(n)/time.Since(began).Seconds())
		}
	}
	header(all)
	for _, kind := range []string{"write", "edit", "read"} {
		cells, medians := []string{}, []float64{}
		for k := range all {
			slices.Sort(took[kind][k])
			n := len(took[kind][k])
			cells = append(cells, fmt.Sprintf("%.3f %.3f", ms(took[kind][k][n/2]), ms(took[kind][k][n*99/100])))
			medians = append(medians, ms(took[kind][k][n/2]))
		}
		row(kind, cells, medians)
	}
	cells, medians := []string{}, []float64{}
	for k := range all {
		slices.Sort(rates[k])
		rate := rates[k][len(rates[k])/2]
		cells, medians = append(cells, fmt.Sprintf("%.0f/s", rate)), append(medians, 1/rate)
	}
	row(fmt.Sprint(o.writers, " writers"), cells, medians)
	return nil
}

// many measures the operations whose cost depends on the number of notes.
func many(o *options, dir string, t *texts) (err error) {
	list := paths(o.n)
	all, _, err := opened(o, dir, list, t)
	defer func() { err = errors.Join(err, closeAll(all)) }()
	if err != nil {
		return err
	}
	searchers := map[int]searcher{} // by the number of the engine
	for k, e := range all {
		if s, ok := e.(searcher); ok {
			began := time.Now()
			if ok, err = s.index(); err != nil {
				return fmt.Errorf("%s: index: %w", e.name(), err)
			}
			if ok {
				searchers[k] = s
				fmt.Printf("%s has indexed the words %.1f s after the last write\n", e.name(),
					time.Since(began).Seconds())
			}
		}
	}
	kinds := []string{"open", "list", "grep", "first", "search"}
	took := map[string][][]time.Duration{}
	for _, kind := range kinds {
		took[kind] = make([][]time.Duration, len(all))
	}
	rng := rand.New(rand.NewPCG(o.seed, 2))
	re := regexp.MustCompile(regexp.QuoteMeta(t.words[3000]) + ` \w+`)
	found := map[int]bool{}
	for range o.rounds {
		for k, e := range all {
			if err := e.close(); err != nil {
				return err
			}
			began := time.Now()
			if err := e.open(filepath.Join(dir, e.name())); err != nil {
				return fmt.Errorf("%s: open: %w", e.name(), err)
			}
			if _, err := e.read(list[rng.IntN(len(list))]); err != nil {
				return fmt.Errorf("%s: read: %w", e.name(), err)
			}
			took["open"][k] = append(took["open"][k], time.Since(began))
			for range 20 {
				folder := filepath.Dir(list[rng.IntN(len(list))])
				began := time.Now()
				if n, err := e.list(folder); err != nil || n == 0 {
					return fmt.Errorf("%s: list: %d, %w", e.name(), n, err)
				}
				took["list"][k] = append(took["list"][k], time.Since(began))
			}
			began = time.Now()
			n, err := e.grep(re)
			if err != nil {
				return fmt.Errorf("%s: grep: %w", e.name(), err)
			}
			found[n] = true
			took["grep"][k] = append(took["grep"][k], time.Since(began))
			s := searchers[k]
			for call := 0; call < 20 && s != nil; call++ {
				words := []string{t.words[rng.IntN(50)], t.words[500+rng.IntN(4000)]}
				began := time.Now()
				if n, err := s.search(words); err != nil || n == 0 {
					return fmt.Errorf("%s: search %v: %d, %w", e.name(), words, n, err)
				}
				kind := "search"
				if call == 0 {
					kind = "first"
				}
				took[kind][k] = append(took[kind][k], time.Since(began))
			}
		}
	}
	if len(found) != 1 {
		return fmt.Errorf("grep finds different numbers of lines: %v", found)
	}
	header(all)
	for _, kind := range kinds {
		cells, medians := []string{}, []float64{}
		for k := range all {
			slices.Sort(took[kind][k])
			if len(took[kind][k]) == 0 {
				cells, medians = append(cells, "-"), append(medians, math.NaN())
				continue
			}
			m := ms(took[kind][k][len(took[kind][k])/2])
			cells, medians = append(cells, fmt.Sprintf("%.3f", m)), append(medians, m)
		}
		row(kind, cells, medians)
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func header(all []engine) {
	fmt.Printf("%-12s", "")
	for _, e := range all {
		fmt.Printf("%18s", e.name())
	}
	for _, e := range all[1:] {
		fmt.Printf("%14s", "x "+e.name())
	}
	fmt.Println()
}

// row prints the values of all engines, and the ratio of the first one's value to each of the others.
func row(name string, cells []string, values []float64) {
	fmt.Printf("%-12s", name)
	for _, c := range cells {
		fmt.Printf("%18s", c)
	}
	for _, v := range values[1:] {
		if math.IsNaN(v) {
			fmt.Printf("%14s", "-")
			continue
		}
		fmt.Printf("%14.2f", values[0]/v)
	}
	fmt.Println()
}
