package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/acklog"
	"github.com/varve-db/varve/working"
)

// soak is one run.
type soak struct {
	dir        string
	length     time.Duration
	every      time.Duration // interval between two kills
	check      time.Duration // interval between two comparisons by the judge
	processes  int
	goroutines int
	seed       uint64
	limits     limits
	tampered   func(st *varve.Store) error // called before each comparison; nil except in a test

	began time.Duration // start of the run, by uptime
	told  *acklog.Record
	rng   *rand.Rand
	all   []*process

	mu       sync.Mutex
	minutes  []*minute
	now      *minute
	seconds  []int // commits in each second since began; -1 for a second in which the judge had stopped the processes
	turned   int   // number of seconds that minutes include
	problems []string
}

func (s *soak) problem(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

// kept is the maximum number of durations of one kind that a minute keeps.
const kept = 1 << 20

// noteOp records an operation and the time at which it ended.
func (s *soak) noteOp(kind string, took time.Duration, ended time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := &s.now.commits
	switch kind {
	case "get":
		list = &s.now.gets
	case "search":
		list = &s.now.searches
	case "purge": // waits for the files of everything before it
		s.now.purges = append(s.now.purges, took)
		s.count(ended, 1)
		return
	case "again":
		s.now.gaveUp++
		return
	case "session": // of which some only read
		return
	default:
		s.count(ended, 1)
		if took > s.now.longest {
			s.now.longest, s.now.longestKind = took, kind
		}
	}
	if len(*list) < kept {
		*list = append(*list, took)
	}
}

// count adds commits to a second; with -1 the second does not count. Seconds are those of the uptime, because the
// reports of the processes may be read late. mu is held.
func (s *soak) count(ended time.Duration, n int) {
	at := max(int((ended-s.began)/time.Second), s.turned)
	for len(s.seconds) <= at {
		s.seconds = append(s.seconds, 0)
	}
	if n < 0 || s.seconds[at] < 0 {
		s.seconds[at] = -1
		return
	}
	s.seconds[at] += n
}

// uncounted excludes the seconds from a given one until now.
func (s *soak) uncounted(from time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(uptime(), -1)
	for at := max(0, int(from/time.Second)); at < len(s.seconds); at++ {
		s.seconds[at] = -1
	}
}

// run executes the run and reports each minute when it is over.
func (s *soak) run(ctx context.Context, tell io.Writer) (err error) {
	s.told, s.rng, s.now, s.began = acklog.New(), rand.New(rand.NewPCG(s.seed, 1)), &minute{}, uptime()
	st, err := varve.Open(ctx, s.dir, nil) // made by one
	if err == nil {
		err = st.Close()
	}
	if err != nil {
		return err
	}
	defer func() {
		for _, p := range s.all {
			err = errors.Join(err, p.kill())
		}
	}()
	for slot := range s.processes {
		p, err := s.start(slot, 0)
		if err != nil {
			return err
		}
		s.all = append(s.all, p)
	}
	for _, p := range s.all {
		if err := p.begun(); err != nil {
			return err
		}
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	began := time.Now()
	s.mu.Lock()
	s.began, s.seconds = uptime(), nil
	s.mu.Unlock()
	killAt, checkAt := began.Add(s.every), began.Add(s.check)
	for n := 1; time.Since(began) < s.length; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		s.look(n%10 == 0)
		switch now := time.Now(); {
		case now.After(killAt) && s.processes > 1:
			killAt = now.Add(s.every)
			if err := s.replace(); err != nil {
				return err
			}
		case now.After(checkAt):
			if err := s.judgeNow(ctx); err != nil {
				return err
			}
			checkAt = time.Now().Add(s.check)
		}
		if int(time.Since(began)/time.Minute) > s.over() {
			s.turn(tell, s.elapsed())
		}
	}
	s.look(true)
	over := s.elapsed() // who closes commits nothing
	for i, p := range s.all {
		if err := p.end(); err != nil {
			s.problem("process %d did not close the store: %v", i, err)
		}
	}
	s.all = nil
	if err := s.compare(ctx); err != nil {
		return err
	}
	s.turn(tell, over)
	return nil
}

// begun waits until a process has opened the store.
func (p *process) begun() error {
	select {
	case <-p.ready:
		return nil
	case <-p.ended:
		return fmt.Errorf("process %d did not open the store", p.slot)
	}
}

func (s *soak) over() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.minutes)
}

// look examines the processes about once a second, and the disk less often.
func (s *soak) look(disk bool) {
	var memory, elder, handles int64
	for i, p := range s.all {
		m, h := p.figures()
		memory, handles = max(memory, m), max(handles, h)
		if i == 0 {
			elder = m
		}
	}
	var bytes, files, log int64
	if disk {
		bytes, files = onDisk(s.dir)
		log, _ = onDisk(filepath.Join(s.dir, "wal"))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.now
	m.memory, m.elder, m.handles = max(m.memory, memory), max(m.elder, elder), max(m.handles, handles)
	m.disk, m.files, m.log = max(m.disk, bytes), max(m.files, files), max(m.log, log)
}

// replace kills one of the processes, never the first one, and starts another in its place, while the others
// continue.
func (s *soak) replace() error {
	slot := 1 + s.rng.IntN(s.processes-1)
	old := s.all[slot]
	if err := old.kill(); err != nil {
		return err
	}
	began := time.Now()
	p, err := s.start(slot, old.life+1)
	if err != nil {
		return err
	}
	s.all[slot] = p
	s.mu.Lock()
	m := s.now
	m.kills++
	s.mu.Unlock()
	go func() {
		if p.begun() != nil {
			return // the end tells
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		m.restart = max(m.restart, time.Since(began))
	}()
	return nil
}

// judgeNow stops the processes, compares the store with the reports, and lets the processes continue.
func (s *soak) judgeNow(ctx context.Context) error {
	from := uptime() - s.began
	for _, p := range s.all {
		if err := p.begun(); err != nil {
			return err
		}
		if _, err := io.WriteString(p.in, "pause\n"); err != nil {
			return err
		}
	}
	for _, p := range s.all {
		select {
		case <-p.paused:
		case <-p.ended:
			return fmt.Errorf("process %d ended by itself", p.slot)
		}
	}
	err := s.compare(ctx)
	s.uncounted(from)
	for _, p := range s.all {
		if _, werr := io.WriteString(p.in, "go\n"); werr != nil {
			err = errors.Join(err, werr)
		}
	}
	return err
}

// compare compares the store with what the processes have reported; no process writes meanwhile.
func (s *soak) compare(ctx context.Context) (err error) {
	st, err := varve.Open(ctx, s.dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	if s.tampered != nil {
		if err := s.tampered(st); err != nil {
			return err
		}
	}
	before := len(s.told.Problems())
	scopes := map[string]*working.Memory{}
	defer func() {
		for _, m := range scopes {
			err = errors.Join(err, m.Close())
		}
	}()
	s.told.Check(func(key string) string {
		var scope *working.Memory
		if name, ok := scopeOf(key); ok {
			if scopes[name] == nil {
				m, err := st.Working().Open(ctx, working.Scope{Agent: "soak", Session: name}, nil)
				if err != nil {
					return "error:" + err.Error()
				}
				scopes[name] = m
			}
			scope = scopes[name]
		}
		return stateIn(ctx, st, scope, key)
	})
	s.told.Trim()
	found := 0
	for look := 1; look <= 2; look++ { // the second says what stays
		before, n := st.Admin().Stats(), 0
		for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
			switch {
			case err != nil:
				return err
			case f.Severity != varve.SeverityInfo:
				if n++; n <= 10 {
					s.problem("look %d: %+v", look, f)
				}
			}
		}
		if n == 0 {
			break
		}
		found += n
		after := st.Admin().Stats()
		s.problem("after %s, look %d: %d findings; durable, flushed, spilled %d %d %d before, %d %d %d after",
			(uptime() - s.began).Round(time.Second), look, n,
			before.Durable, before.Flushed, before.Spilled, after.Durable, after.Flushed, after.Spilled)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.checks++
	s.now.broken += len(s.told.Problems()) - before + found
	return nil
}

// elapsed returns the number of seconds that have passed.
func (s *soak) elapsed() int { return int((uptime() - s.began) / time.Second) }

// turn ends a minute and adds the seconds that have passed since the previous one.
func (s *soak) turn(tell io.Writer, over int) {
	s.mu.Lock()
	m := s.now
	m.from = s.turned
	for ; s.turned < over; s.turned++ {
		n := 0
		if s.turned < len(s.seconds) {
			n = s.seconds[s.turned]
		}
		m.seconds = append(m.seconds, n)
	}
	s.now = &minute{}
	s.minutes = append(s.minutes, m)
	n := len(s.minutes)
	s.mu.Unlock()
	for _, list := range [][]time.Duration{m.commits, m.gets, m.searches, m.purges} {
		slices.Sort(list)
	}
	rate, _, _ := m.rate()
	fmt.Fprintf(tell, "minute %d: %d commits/s, p99 %.1f ms, %d wrong\n", n, rate, ms(quantile(m.commits, 0.99)), m.broken)
}

// wrong returns all faults of the run.
func (s *soak) wrong() []string {
	all := append(s.told.Problems(), s.problems...)
	return append(all, judge(s.minutes, s.limits)...)
}
