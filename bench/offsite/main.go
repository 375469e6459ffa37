package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/remote"
)

func main() {
	if err := command(); err != nil {
		fmt.Fprintln(os.Stderr, "offsite:", err)
		os.Exit(1)
	}
}

// run is one run of the command.
type run struct {
	dir     string
	n       int
	pairs   int
	seconds float64
	rate    float64
	lag     time.Duration
	profile string
	out     strings.Builder
}

func command() error {
	r := &run{}
	flag.IntVar(&r.n, "n", 100_000, "number of `memories` that are cloned")
	flag.IntVar(&r.pairs, "pairs", 5, "number of `pairs`, of whose figures the median counts")
	flag.Float64Var(&r.seconds, "seconds", 5, "length of each burst of writers in `seconds`")
	flag.Float64Var(&r.rate, "rate", 300, "`puts` each second while the age of the copy is measured")
	flag.DurationVar(&r.lag, "lag", time.Minute, "how long the age of the copy is measured")
	only := flag.String("only", "cost,lag,clone", "comma-separated `parts`")
	flag.StringVar(&r.profile, "profile", "", "`file` for a CPU profile of the last clone")
	file := flag.String("o", "", "`file` for the report")
	flag.Parse()
	if flag.NArg() != 1 {
		return fmt.Errorf("one folder is needed: %q", flag.Args())
	}
	r.dir = flag.Arg(0)
	if names, err := os.ReadDir(r.dir); err == nil && len(names) > 0 {
		return fmt.Errorf("%s is not empty", r.dir)
	}
	args := strings.Join(os.Args[1:len(os.Args)-1], " ") + " DIR"
	parts := map[string]func(context.Context) error{"cost": r.cost, "lag": r.age, "clone": r.clone}
	fmt.Fprintf(&r.out, "# A copy elsewhere\n\n"+
		"Made by `go run ./offsite %s` in `bench/`, %s, %d cores; load average at the "+
		"beginning: %s.\n\n| | |\n|---|---:|\n", args, time.Now().UTC().Format("2006-01-02"), runtime.NumCPU(),
		loadAverage())
	for _, name := range strings.Split(*only, ",") {
		part := parts[name]
		if part == nil {
			return fmt.Errorf("%q is no part: cost, lag, clone", name)
		}
		if err := part(context.Background()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	fmt.Print(r.out.String())
	if *file != "" {
		return os.WriteFile(*file, []byte(r.out.String()), 0o644)
	}
	return nil
}

func loadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(b))[:3], " ")
}

func (r *run) row(what, figure string, args ...any) {
	line := fmt.Sprintf("| %s | %s |\n", what, fmt.Sprintf(figure, args...))
	fmt.Fprint(os.Stderr, line)
	r.out.WriteString(line)
}

// text returns a text of about 400 bytes.
func text(rng *rand.Rand) string {
	var b strings.Builder
	for b.Len() < 400 {
		fmt.Fprintf(&b, "word%d ", rng.IntN(20_000))
	}
	return b.String()
}

// copied is a store with or without a copy elsewhere that its process sends to.
type copied struct {
	st     *varve.Store
	o      *varve.Options
	store  string
	place  string
	remote remote.Remote // nil: the store has no copy
	n      atomic.Int64
}

func (r *run) open(ctx context.Context, name string, sends bool) (*copied, error) {
	dir := filepath.Join(r.dir, name)
	c := &copied{store: filepath.Join(dir, "store"), place: filepath.Join(dir, "remote")}
	c.o = &varve.Options{StateDir: filepath.Join(dir, "state")}
	if sends {
		c.o.Remote = varve.OpenFolder
	}
	var err error
	if c.st, err = varve.Open(ctx, c.store, c.o); err != nil || !sends {
		return c, err
	}
	url := "file://" + filepath.ToSlash(c.place)
	if c.remote, err = varve.CreateFolder(ctx, url); err != nil {
		return c, err
	}
	return c, c.st.Admin().Offsite().Add(ctx, c.remote, url)
}

// burst puts memories with 16 goroutines, and returns how many each second.
func (c *copied) burst(ctx context.Context, seconds float64) (float64, error) {
	began, done := time.Now(), atomic.Int64{}
	var working sync.WaitGroup
	errs := make(chan error, 16)
	for range 16 {
		working.Go(func() {
			rng := rand.New(rand.NewPCG(rand.Uint64(), 1))
			for time.Since(began).Seconds() < seconds {
				m := varve.Memory{ID: fmt.Sprintf("m%d", c.n.Add(1)), Content: text(rng)}
				if _, err := c.st.Put(ctx, m); err != nil {
					errs <- err
					return
				}
				done.Add(1)
			}
		})
	}
	working.Wait()
	select {
	case err := <-errs:
		return 0, err
	default:
		return float64(done.Load()) / time.Since(began).Seconds(), nil
	}
}

// cost measures pairs of bursts, one into a store that is sent, one into a store that is not.
func (r *run) cost(ctx context.Context) error {
	plain, err := r.open(ctx, "plain", false)
	if err != nil {
		return err
	}
	sent, err := r.open(ctx, "sent", true)
	if err != nil {
		return err
	}
	begin, _, err := sent.st.Admin().Offsite().Behind(ctx, sent.remote)
	if err != nil {
		return err
	}
	var ratios, rates []float64
	for i := range r.pairs {
		var each [2]float64
		for j := range 2 {
			which := (i + j) % 2
			if each[which], err = []*copied{plain, sent}[which].burst(ctx, r.seconds); err != nil {
				return err
			}
			time.Sleep(3 * time.Second) // what is behind catches up
		}
		fmt.Fprintf(os.Stderr, "%.0f puts/s without a copy, %.0f with one (load %s)\n", each[0], each[1], loadAverage())
		ratios, rates = append(ratios, each[1]/each[0]), append(rates, each[1])
	}
	slices.Sort(ratios)
	slices.Sort(rates)
	r.row("puts of 16 writers each second, with a copy", "%.0f", rates[len(rates)/2])
	r.row(fmt.Sprintf("relative to without one, median of %d interleaved pairs (least, most)", r.pairs),
		"%.3f (%.3f, %.3f)",
		ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1])
	head, _, err := sent.st.Admin().Offsite().Behind(ctx, sent.remote)
	if err != nil {
		return err
	}
	bytes, err := size(filepath.Join(sent.place, "log"))
	if err != nil {
		return err
	}
	r.row("bytes sent for each byte of log, snapshots excluded", "%.3f", float64(bytes)/float64(head.At.LSN-begin.At.LSN))
	if err := plain.st.Close(); err != nil {
		return err
	}
	return sent.st.Close()
}

func size(folder string) (n int64, err error) {
	err = filepath.WalkDir(folder, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}

// age measures, under a steady load, how long after its acknowledgement each put is in the copy.
func (r *run) age(ctx context.Context) error {
	c, err := r.open(ctx, "steady", true)
	if err != nil {
		return err
	}
	type put struct {
		version uint64
		at      time.Time
	}
	var mu sync.Mutex
	var waiting []put
	var ages []time.Duration
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var watching sync.WaitGroup
	var lookErr error
	watching.Go(func() {
		for ctx.Err() == nil {
			head, _, err := c.st.Admin().Offsite().Behind(ctx, c.remote)
			if err != nil {
				lookErr = err
				return
			}
			now := time.Now()
			mu.Lock()
			for len(waiting) > 0 && waiting[0].version < head.At.LSN {
				ages = append(ages, now.Sub(waiting[0].at))
				waiting = waiting[1:]
			}
			mu.Unlock()
			time.Sleep(10 * time.Millisecond)
		}
	})
	rng := rand.New(rand.NewPCG(1, 1))
	puts := 0
	for began := time.Now(); time.Since(began) < r.lag; puts++ {
		time.Sleep(time.Until(began.Add(time.Duration(float64(puts) / r.rate * float64(time.Second)))))
		m, err := c.st.Put(ctx, varve.Memory{ID: fmt.Sprintf("m%d", puts%5000), Content: text(rng)})
		if err != nil {
			return err
		}
		mu.Lock()
		waiting = append(waiting, put{m.Version, time.Now()})
		mu.Unlock()
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		mu.Lock()
		left := len(waiting)
		mu.Unlock()
		if left == 0 {
			break
		}
	}
	cancel()
	watching.Wait()
	if lookErr != nil || len(waiting) > 0 {
		return fmt.Errorf("%d puts are not in the copy: %w", len(waiting), lookErr)
	}
	slices.Sort(ages)
	r.row(fmt.Sprintf("seconds until a put is in the copy, %.0f puts each second: p50, p99, most (load %s)",
		float64(puts)/r.lag.Seconds(), loadAverage()), "%.2f, %.2f, %.2f", ages[len(ages)/2].Seconds(),
		ages[len(ages)*99/100].Seconds(), ages[len(ages)-1].Seconds())
	return c.st.Close()
}

// clone compares a clone with a plain copy of the folder of the store.
func (r *run) clone(ctx context.Context) error {
	c, err := r.open(ctx, "large", false)
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(2, 2))
	_, err = c.st.PutAll(ctx, func(yield func(varve.Memory) bool) {
		for i := range r.n {
			if !yield(varve.Memory{ID: fmt.Sprintf("m%06d", i), Content: text(rng)}) {
				return
			}
		}
	})
	if err == nil {
		err = c.st.Flush(ctx)
	}
	if err != nil {
		return err
	}
	url := "file://" + filepath.ToSlash(c.place)
	if c.remote, err = varve.CreateFolder(ctx, url); err != nil {
		return err
	}
	if err := c.st.Admin().Offsite().Add(ctx, c.remote, url); err != nil {
		return err
	}
	if err := c.st.Close(); err != nil {
		return err
	}
	o := &varve.Options{StateDir: filepath.Join(r.dir, "other")}
	var ratios, seconds []float64
	var parts [][3]float64
	for i := range r.pairs {
		to := filepath.Join(r.dir, fmt.Sprint("clone", i))
		copying, err := timed(func() error {
			return exec.Command("sh", "-c", `cp -a "$1" "$2" && sync -f "$2"`, "sh", c.store, to+".cp").Run()
		})
		if err != nil {
			return err
		}
		stop, err := r.profiled()
		if err != nil {
			return err
		}
		var written [2]time.Duration // since the beginning: all files are handed to the system, and are durable
		began := time.Now()
		progress := func(done, total int64) {
			if i := 0; done == total {
				if written[0] > 0 {
					i = 1
				}
				written[i] = time.Since(began)
			}
		}
		cloning, err := timed(func() error {
			o := &varve.CloneOptions{Options: o, Progress: progress}
			if _, err := varve.Clone(ctx, c.remote, to, o); err != nil {
				return err
			}
			return exec.Command("sync", "-f", to).Run()
		})
		stop()
		if err != nil {
			return err
		}
		parts = append(parts, [3]float64{written[0].Seconds(), (written[1] - written[0]).Seconds(),
			cloning - written[1].Seconds()})
		fmt.Fprintf(os.Stderr, "cp -a %.1f s, clone %.1f s: %.1f (load %s)\n", copying, cloning, parts[i],
			loadAverage())
		ratios, seconds = append(ratios, copying/cloning), append(seconds, cloning)
		for _, name := range []string{to, to + ".cp"} {
			if err := os.RemoveAll(name); err != nil {
				return err
			}
		}
	}
	slices.Sort(ratios)
	middle := func(part int) float64 {
		slices.SortFunc(parts, func(a, b [3]float64) int { return cmp.Compare(a[part], b[part]) })
		return parts[len(parts)/2][part]
	}
	slices.Sort(seconds)
	r.row(fmt.Sprintf("seconds to clone %d memories, median of %d", r.n, r.pairs), "%.1f", seconds[len(seconds)/2])
	r.row("of these: until all files are written, to sync them, to open and verify the store", "%.1f, %.1f, %.1f",
		middle(0), middle(1), middle(2))
	r.row("speed relative to `cp -a` and `sync -f` of the store (least, most)", "%.2f (%.2f, %.2f)", ratios[len(ratios)/2],
		ratios[0], ratios[len(ratios)-1])
	return nil
}

// profiled begins a CPU profile, if one was asked for.
func (r *run) profiled() (stop func(), err error) {
	if r.profile == "" {
		return func() {}, nil
	}
	f, err := os.Create(r.profile)
	if err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
	}, pprof.StartCPUProfile(f)
}

func timed(f func() error) (float64, error) {
	began := time.Now()
	err := f()
	return time.Since(began).Seconds(), err
}
