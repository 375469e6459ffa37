package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

type options struct {
	url, key string
	clients  int
	time     time.Duration
	every    time.Duration
	byPath   bool
	program  []string
}

func main() {
	var o options
	flag.StringVar(&o.url, "url", "http://127.0.0.1:7717", "where the server listens")
	flag.StringVar(&o.key, "key", "", "API `key` of all requests")
	flag.IntVar(&o.clients, "clients", 8, "number of clients")
	flag.DurationVar(&o.time, "time", 2*time.Minute, "how long the clients write")
	flag.DurationVar(&o.every, "every", 10*time.Second, "interval between two kills")
	flag.BoolVar(&o.byPath, "by-path", false, "update memories by their paths, and delete none")
	flag.Parse()
	o.program = flag.Args()
	log.SetFlags(0)
	if len(o.program) == 0 || o.clients < 1 {
		log.Fatal("name the program that is to be started, after --")
	}
	if err := run(context.Background(), &o); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, o *options) error {
	s := &process{o: o, api: newAPI(o)}
	if err := s.start(ctx); err != nil {
		return err
	}
	defer s.kill()
	if err := s.api.createStore(ctx); err != nil {
		return err
	}
	r := newRecord()
	shared, err := createShared(ctx, s.api, r)
	if err != nil {
		return err
	}
	writing, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	for i := range o.clients {
		c := &client{i: i, api: s.api, r: r, shared: shared, byPath: o.byPath}
		all.Go(func() { c.write(writing) })
	}
	kills := 0
	var waits []time.Duration
	for end := time.Now().Add(o.time); time.Now().Before(end); kills++ {
		time.Sleep(min(o.every, time.Until(end)))
		s.kill()
		began := time.Now()
		if err := s.start(ctx); err != nil {
			return err
		}
		waits = append(waits, time.Since(began))
	}
	stop()
	all.Wait()
	fmt.Printf("%d clients, %v, %d kills; the server answers again after %v (median), %v at most\n", o.clients, o.time,
		kills, median(waits).Round(time.Millisecond), slices.Max(waits).Round(time.Millisecond))
	return r.report(ctx, s.api)
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// process is the server.
type process struct {
	o   *options
	api *api
	cmd *exec.Cmd
}

// start starts the server, and waits until it answers.
func (s *process) start(ctx context.Context) error {
	s.cmd = exec.CommandContext(ctx, s.o.program[0], s.o.program[1:]...)
	s.cmd.Stdout, s.cmd.Stderr = os.Stderr, os.Stderr
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if a := s.api.do(ctx, "GET", "", nil); a.status == 200 {
			return nil
		}
	}
	return fmt.Errorf("%s does not answer at %s", strings.Join(s.o.program, " "), s.o.url)
}

// kill kills the server, with the processes that it has started.
func (s *process) kill() {
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	_ = s.cmd.Wait()
}
