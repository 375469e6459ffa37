package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/varve-db/varve"
)

var (
	sizes  = flag.String("n", "1000,10000,100000", "number of memories")
	dim    = flag.Int("d", 384, "dimension of the embeddings")
	calls  = flag.Int("calls", 200, "calls of each kind in a round")
	rounds = flag.Int("rounds", 3, "rounds")
	seed   = flag.Uint64("seed", 1, "seed of the memories")
	dir    = flag.String("dir", "", "folder for the stores; empty: a temporary one")
)

var columns = []string{"open", "put", "get", "session", "words", "vector", "command"}

func main() {
	flag.Parse()
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if err := os.MkdirAll(cmp.Or(*dir, os.TempDir()), 0o700); err != nil {
		return err
	}
	at, err := os.MkdirTemp(*dir, "latency-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(at)
	memctl := filepath.Join(at, "memctl")
	build := exec.Command("go", "build", "-o", memctl, "./cmd/memctl")
	build.Dir = ".."
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	fmt.Printf("| memories | %s |\n|---:|%s\n", strings.Join(columns, " | "), strings.Repeat("---:|", len(columns)))
	for _, text := range strings.Split(*sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		s := &sized{dir: filepath.Join(at, text), memctl: memctl, n: n, took: map[string][]time.Duration{}}
		if err := s.measure(ctx); err != nil {
			return err
		}
		fmt.Printf("| %d |", n)
		for _, c := range columns {
			fmt.Print(" ", s.cell(c), " |")
		}
		fmt.Println()
	}
	return nil
}

// sized is a store of one size, with the durations of its calls.
type sized struct {
	dir, memctl string
	n           int
	r           *rand.Rand
	took        map[string][]time.Duration
}

func id(i int) string { return fmt.Sprintf("m-%07d", i) }

func (s *sized) memory(i int) varve.Memory {
	v := make([]float32, *dim)
	for k := range v {
		v[k] = float32(s.r.NormFloat64())
	}
	return varve.Memory{ID: id(i), Content: s.words(50), Embedding: v,
		Metadata: map[string]any{"session_id": fmt.Sprint("s", i/100)}}
}

// words returns n words of a vocabulary of 5,000. The frequency of the k-th word is proportional to 1/k.
func (s *sized) words(n int) string {
	var b strings.Builder
	for range n {
		k := int(math.Pow(5000, s.r.Float64()))
		for k += 26; k > 0; k /= 26 {
			b.WriteByte('a' + byte(k%26))
		}
		b.WriteString("on ")
	}
	return b.String()
}

func (s *sized) measure(ctx context.Context) error {
	s.r = rand.New(rand.NewPCG(*seed, uint64(s.n)))
	st, err := varve.Open(ctx, s.dir, nil)
	if err != nil {
		return err
	}
	_, err = st.PutAll(ctx, func(yield func(varve.Memory) bool) {
		for i := range s.n {
			if !yield(s.memory(i)) {
				return
			}
		}
	})
	if err == nil {
		err = st.Close()
	}
	for round := 0; err == nil && round < *rounds; round++ {
		err = s.round(ctx, s.n+round**calls)
	}
	return err
}

// round measures all kinds of calls, one kind after the other; new memories are numbered from first on.
func (s *sized) round(ctx context.Context, first int) error {
	var st *varve.Store
	for range 10 {
		if st != nil {
			if err := st.Close(); err != nil {
				return err
			}
		}
		began := time.Now()
		var err error
		if st, err = varve.Open(ctx, s.dir, nil); err != nil {
			return err
		}
		if _, err := st.Get(ctx, id(0)); err != nil {
			return err
		}
		s.note("open", began)
	}
	fresh := make([]varve.Memory, *calls)
	for i := range fresh {
		fresh[i] = s.memory(first + i)
	}
	kinds := map[string]func(i int) error{
		"put": func(i int) error { _, err := st.Put(ctx, fresh[i]); return err },
		"get": func(int) error { _, err := st.Get(ctx, id(s.r.IntN(s.n))); return err },
		"session": func(int) error {
			for _, err := range st.Memories(ctx, varve.InSession(fmt.Sprint("s", s.r.IntN(s.n/100)))) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"words": func(int) error { _, err := st.Search(ctx, varve.Query{Text: s.words(2)}); return err },
		"vector": func(i int) error {
			_, err := st.Search(ctx, varve.Query{Vector: fresh[i].Embedding})
			return err
		},
		"command": func(int) error {
			return exec.Command(s.memctl, "--store", s.dir, "get", id(s.r.IntN(s.n))).Run()
		},
	}
	for _, c := range columns[1:] {
		if err := s.call(c, kinds[c]); err != nil {
			return fmt.Errorf("%s: %w", c, err)
		}
	}
	return st.Close()
}

func (s *sized) call(kind string, f func(i int) error) error {
	end := time.Now().Add(5 * time.Second)
	for i := range *calls {
		began := time.Now()
		if began.After(end) {
			break
		}
		if err := f(i); err != nil {
			return err
		}
		if i > 0 { // the first one may be the first ever
			s.note(kind, began)
		}
	}
	return nil
}

func (s *sized) note(kind string, began time.Time) {
	s.took[kind] = append(s.took[kind], time.Since(began))
}

func (s *sized) cell(kind string) string {
	all := s.took[kind]
	if len(all) == 0 {
		return "–"
	}
	slices.Sort(all)
	at := func(q float64) float64 { return float64(all[int(q*float64(len(all)-1))].Microseconds()) / 1e3 }
	return fmt.Sprintf("%.3g (%.3g)", at(0.5), at(0.99))
}
