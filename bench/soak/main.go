package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"
)

func main() {
	if err := command(); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func command() error {
	length := flag.Float64("minutes", 60, "length in `minutes`")
	processes := flag.Int("processes", 4, "number of `processes` that work; the first one is never killed")
	goroutines := flag.Int("goroutines", 4, "number of `goroutines` in each process")
	every := flag.Duration("kill", time.Minute, "how often one of the processes is killed")
	check := flag.Duration("check", 3*time.Minute,
		"interval between two comparisons of the store with the reports of the processes")
	memory := flag.Int64("rss", 1<<30, "maximum number of `bytes` of memory of one process")
	handles := flag.Int64("handles", 256, "maximum number of open `files` of one process")
	disk := flag.Int64("disk", 2<<30, "maximum number of `bytes` on disk")
	out := flag.String("o", "", "`file` for the report")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "seed of the random choices")
	isChild := flag.Bool("child", false, "internal: be one of the processes")
	slot := flag.Int("slot", 0, "internal")
	life := flag.Int("life", 0, "internal")
	flag.Parse()
	if flag.NArg() != 1 {
		return fmt.Errorf("one folder is needed: %q", flag.Args())
	}
	dir := flag.Arg(0)
	if *isChild {
		return runChild(context.Background(), *slot, *life, *processes, *goroutines, *seed, dir)
	}
	if *processes < 1 || *goroutines < 1 || *length <= 0 || *every <= 0 || *check <= 0 {
		return fmt.Errorf("-processes, -goroutines, -minutes, -kill and -check must be above 0")
	}
	if names, err := os.ReadDir(dir); err == nil && len(names) > 0 {
		return fmt.Errorf("%s is not empty", dir)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s := &soak{
		dir: dir, length: time.Duration(*length * float64(time.Minute)), every: *every, check: *check, processes: *processes,
		goroutines: *goroutines, seed: *seed,
		limits: limits{*memory, *handles, *disk},
	}
	fmt.Fprintf(os.Stderr, "seed %d\n", *seed)
	err := s.run(ctx, os.Stderr)
	report := s.report()
	fmt.Print(report)
	if *out != "" {
		if werr := os.WriteFile(*out, []byte(report), 0o644); err == nil {
			err = werr
		}
	}
	if err == nil && len(s.wrong()) > 0 {
		err = fmt.Errorf("%d failures", len(s.wrong()))
	}
	return err
}

// report returns the report of the run: the table and the faults.
func (s *soak) report() string {
	var out strings.Builder
	fmt.Fprintf(&out,
		"# Soak\n\nMade by `go run ./soak %s` in `bench/`, seed %d: %d processes of %d goroutines, one killed every %s, "+
			"the judge looks every %s. %d keys, %d answers. Commits are puts, updates, batches, deletes and working memory; "+
			"purges wait for files and are not among them.\n\n%s\n",
		strings.Join(os.Args[1:], " "), s.seed, s.processes, s.goroutines, s.every, s.check, s.told.Len(), s.told.Ops,
		table(s.minutes))
	wrong := s.wrong()
	if len(wrong) == 0 {
		out.WriteString("Nothing is wrong.\n")
		return out.String()
	}
	fmt.Fprintf(&out, "%d failures:\n\n", len(wrong))
	for i, w := range wrong {
		if i == 100 {
			fmt.Fprintf(&out, "- and %d more\n", len(wrong)-i)
			break
		}
		out.WriteString("- " + w + "\n")
	}
	return out.String()
}
