package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"time"
)

// mostPuts is the maximum number of puts in a burst. It limits a burst to 600 MB, so that even a fast engine stays
// within its log budget or its memtables.
const mostPuts = 600_000

type config struct {
	rounds  int
	seconds time.Duration // duration of each measured burst
	n       int           // number of documents in the filled store
	files   int           // number of files for the settled rates
	dir     string
	out     string
	engines []func() Engine
	only    []string // names of workloads; empty: all
	steps   []int    // sizes of the store at which -rates measures
}

func main() {
	if err := command(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func command() error {
	quick := flag.Bool("quick", false,
		"a short test run of a few seconds: the numbers are imprecise, and no file is written without -o")
	rounds := flag.Int("rounds", 3, "number of `rounds`, of which each number is the median")
	seconds := flag.Float64("seconds", 3, "length of each burst in `seconds`")
	n := flag.Int("n", 100_000, "number of `documents` in the filled store")
	files := flag.Int("files", 20_000, "number of `files` for the settled rates")
	dir := flag.String("dir", ".data", "`folder` on the disk to measure; the new files in it are removed at the end")
	keep := flag.Bool("keep", false,
		"keep the new files: removing many files slows the next run, see the package comment")
	list := flag.String("engines", "", "comma-separated parts of engine `names`; all by default")
	only := flag.String("only", "", "comma-separated `names` of workloads; all by default")
	profile := flag.String("cpuprofile", "", "write a CPU profile to this `file`")
	out := flag.String("o", "RESULTS.md", "`file` for the results")
	rates := flag.Bool("rates", false,
		"measure how the rates of Varve, or of -engines, depend on the size of the store")
	sizes := flag.String("steps", "", "comma-separated `sizes` of the store for -rates; 100 to 100,000 by default")
	workerOf := flag.String("worker", "", "internal: put into this `engine`'s store in -dir")
	steady := flag.String("steady", "",
		"measure minutes of steady load, and store each result in this `folder`; existing results are not measured "+
			"again")
	minutes := flag.Float64("minutes", 3, "`minutes` of each cell of -steady")
	mixed := flag.Float64("mixed", 10, "`minutes` of the mixed load of -steady")
	steadyWorker := flag.String("steadyworker", "", "internal: be a process of a cell with this `load`")
	hotKind := flag.String("hot", "", "internal: operation of the worker on a few documents")
	recovers := flag.Bool("recover", false,
		"measure how long a store takes to open after kill -9 under a steady load: -rounds times, each after -seconds of "+
			"it; 5 of 10 by default")
	waits := flag.Bool("waiting", false,
		"measure the operations that a caller waits for, in stores of -steps documents: 10,000 and 100,000 by default")
	waiterOf := flag.String("waiter", "", "internal: measure the waits of this `engine`")
	openerOf := flag.String("opener", "", "internal: open the store that a killed process of this `load` has left")
	seed := flag.Uint64("seed", 1, "seed of the ids")
	flag.BoolVar(&prose, "prose", false,
		"documents of words, as with -steady, instead of random letters, where nearly every word is new")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected arguments: %q", flag.Args())
	}
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if *quick {
		for name, f := range map[string]func(){
			"rounds": func() { *rounds = 1 }, "seconds": func() { *seconds = 0.3 }, "n": func() { *n = 2000 },
			"files": func() { *files = 1000 }, "o": func() { *out = "" },
		} {
			if !given[name] {
				f()
			}
		}
	}
	if *recovers {
		for name, f := range map[string]func(){"rounds": func() { *rounds = 5 }, "seconds": func() { *seconds = 10 },
			"o": func() { *out = "" }, "engines": func() { *list = "varve" }} {
			if !given[name] {
				f()
			}
		}
	}
	if *waits && !given["o"] {
		*out = ""
	}
	d := time.Duration(*seconds * float64(time.Second))
	if *workerOf != "" {
		return worker(*workerOf, *dir, *hotKind, d, *seed)
	}
	if *rounds < 1 || *n < 1 || *files < 1 || d <= 0 {
		return fmt.Errorf("-rounds, -seconds, -n and -files must be above 0")
	}
	if *rates && *list == "" {
		*list = "varve"
	}
	if *waiterOf != "" {
		c := config{n: *n, dir: *dir}
		if *only != "" {
			c.only = strings.Split(*only, ",")
		}
		return c.waiter(*waiterOf, *seed)
	}
	some, err := chosen(*list)
	if err != nil {
		return err
	}
	if *profile != "" && *steady == "" {
		f, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	if *steadyWorker != "" {
		c := config{seconds: d, n: *n, dir: *dir, engines: some}
		return c.runSteadyWorker(*steadyWorker, *seed)
	}
	if *openerOf != "" {
		c := config{dir: *dir, engines: some}
		return c.opener(*openerOf, *seed)
	}
	var loads []string
	if *waits {
		loads, err = chosenWaits(*only)
	} else {
		loads, err = chosenLoads(*only, *steady != "" || *recovers)
	}
	if err != nil {
		return err
	}
	if *waits && *sizes == "" {
		*sizes = "10000,100000"
	}
	sized, err := stepsOf(*sizes)
	if err != nil {
		return err
	}
	made := *dir
	if err := os.MkdirAll(made, 0o700); err != nil {
		return err
	}
	// A folder of its own: what else lies in -dir is not ours to remove.
	work, err := os.MkdirTemp(made, "bench-*")
	if err != nil {
		return err
	}
	defer func() {
		if !*keep {
			os.RemoveAll(work)
		}
		os.Remove(made) // only if it is empty
	}()
	if work, err = filepath.Abs(work); err != nil {
		return err
	}
	c := config{*rounds, d, *n, *files, work, *out, some, loads, sized}
	if *steady != "" {
		c.out = ""
		if !given["n"] {
			c.n = 1_000_000
		}
		s := steadyConfig{c, *steady, *minutes, *mixed, *profile}
		return s.run()
	}
	if *recovers {
		return c.recoverAll()
	}
	if *waits {
		return c.waits(*list)
	}
	if *rates {
		if !given["o"] {
			c.out = ""
		}
		return c.rates()
	}
	return c.all()
}

// commandLine returns the command line that repeats this run.
func commandLine() string {
	return strings.TrimSpace("go run . " + strings.Join(os.Args[1:], " "))
}

func (c *config) write(text string) error {
	fmt.Print("\n", text)
	if c.out == "" {
		return nil
	}
	return os.WriteFile(c.out, []byte(text), 0o644)
}
