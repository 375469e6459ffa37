package linear

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
)

var (
	histories   = flag.Int("histories", 0, "how many histories TestLinearizable makes; 0: some seconds of them, with VARVE_LONG=1 300")
	historySeed = flag.Uint64("seed", 0, "the seed of TestLinearizable; 0: another one each time")
)

const (
	linearProcesses = 4
	linearSteps     = 8           // of a goroutine in a history
	linearPatience  = time.Minute // to judge a history, or to wait for one to end
)

// Histories of puts, conditional puts, deletions, gets, batches and transactions, from 4 processes of 4
// goroutines, some of them killed, some stopped for a while, beside flushes, merges, spills and
// recycling: each must be a possible history of a single map that does one operation at a time
// (porcupine). Calls and answers are recorded outside the store, with the times of one clock.
//
//	go test ./tests/linear -histories 5000 -timeout 1h
//	go test ./tests/linear -seed N      the same choices again; what the machine makes of them may differ
//	go test ./tests/linear -artifacts -outputdir DIR      keeps the drawing of a history that is wrong
func TestLinearizable(t *testing.T) {
	if _, ok := storetest.Monotonic(); !ok || runtime.GOOS == "windows" {
		t.Skip("processes share no clock here that this test knows: run it on Linux; fuzz/ judges histories of simulated processes")
	}
	seed := proofs.Seed(t, *historySeed)
	l := &linear{t: t, dir: filepath.Join(t.TempDir(), "store"), rng: rand.New(rand.NewPCG(seed, 1)), pace: 50 * time.Millisecond,
		events: map[int][]linearEvent{}, judge: make(chan judged, 64), done: make(chan struct{})}
	st, err := varve.Open(context.Background(), l.dir, linearOptions())
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, p := range l.lives {
			_ = p.cmd.Process.Kill()
		}
	})
	go l.judgeAll()
	most, end := *histories, time.Time{}
	if most == 0 && proofs.Long() {
		most = 300
	}
	if most == 0 {
		most, end = math.MaxInt, time.Now().Add(2*time.Second)
	}
	began := time.Now()
	for h := 1; h <= most && (end.IsZero() || time.Now().Before(end)) && !t.Failed(); h++ {
		l.history(h)
	}
	for _, p := range l.lives {
		l.end(p, false)
	}
	close(l.judge)
	<-l.done
	if st, err = varve.Open(context.Background(), l.dir, linearOptions()); err != nil {
		t.Fatal(err)
	}
	if r := st.Admin().OpenReport(); r.Damage != nil || r.Rebuilt != nil || r.Healed != nil || r.ProblemCount > 0 {
		t.Errorf("nothing was damaged, but: %+v", r)
	}
	storetest.ExpectClean(t, st.Admin().Verify(context.Background(), varve.VerifyOptions{}), l.dir, true)
	if err := st.Close(); err != nil {
		t.Error(err)
	}
	t.Logf("%d histories in %.0f s: %d operations, %d of them of unknown outcome, %d refused by a condition; %d processes, %d killed, %d stopped",
		l.made, time.Since(began).Seconds(), l.ops, l.unknown, l.conflicts, l.started, l.kills, l.stops)
}

// linear produces histories.
type linear struct {
	t       *testing.T
	dir     string
	rng     *rand.Rand
	lives   []*linearLife
	started int
	pace    time.Duration // what a history takes, about
	events  map[int][]linearEvent
	judge   chan judged
	done    chan struct{}

	made, kills, stops      int
	ops, unknown, conflicts int // of the judge
}

// judged is a history that waits for its verdict.
type judged struct {
	number    int
	ops       []porcupine.Operation
	deletions [linearKeys]int
	wrong     []string
}

// linearLife is the life of one process.
type linearLife struct {
	life   int
	cmd    *exec.Cmd
	in     io.WriteCloser
	said   chan string // closed at its end
	stderr bytes.Buffer
	read   int64 // of its record
}

func (l *linear) start() *linearLife {
	l.started++
	p := &linearLife{life: l.started, said: make(chan string, 16)}
	p.cmd = exec.Command(os.Args[0], "-test.run=^$")
	p.cmd.Env = append(os.Environ(), fmt.Sprintf("VARVE_CHILD=%d:%d", p.life, l.rng.Uint64()), "VARVE_DIR="+l.dir)
	p.cmd.Stderr = &p.stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	p.in = in
	go func() {
		defer close(p.said)
		for r := bufio.NewReader(out); ; {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			p.said <- strings.TrimSpace(line)
		}
	}()
	return p
}

// end kills a process, or lets it close its store, and reads the rest of its output.
func (l *linear) end(p *linearLife, kill bool) {
	if kill {
		l.kills++
		_ = p.cmd.Process.Kill()
	} else {
		_ = p.in.Close()
	}
	for line := range p.said {
		l.heard(p, line)
	}
	err := p.cmd.Wait()
	if p.stderr.Len() > 0 || err != nil && !kill {
		l.t.Errorf("process %d: %v\n%s", p.life, err, p.stderr.String())
	}
	l.gather(p)
}

func (l *linear) heard(p *linearLife, line string) {
	if !strings.HasPrefix(line, "done ") {
		l.t.Errorf("process %d: %s", p.life, line)
	}
}

// gather reads what a process has recorded since last time.
func (l *linear) gather(p *linearLife) {
	b, err := os.ReadFile(linearRecord(l.dir, p.life))
	if os.IsNotExist(err) {
		return // killed before it began
	}
	if err != nil {
		l.t.Fatal(err)
	}
	b = b[p.read:]
	for len(b) > 0 {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		if !whole {
			return // the process was killed in the middle of a line
		}
		var e linearEvent
		if err := json.Unmarshal(line, &e); err != nil {
			l.t.Fatalf("record of process %d: %v: %q", p.life, err, line)
		}
		l.events[e.History] = append(l.events[e.History], e)
		p.read += int64(len(line)) + 1
		b = rest
	}
}

// history produces one history: all processes work at once, while some are killed or stopped.
func (l *linear) history(h int) {
	for len(l.lives) < linearProcesses {
		l.lives = append(l.lives, l.start())
	}
	joint := 1
	if l.rng.IntN(4) == 0 {
		joint = 0
	}
	began := time.Now()
	busy := map[*linearLife]bool{}
	order := func(p *linearLife, steps int) {
		if _, err := fmt.Fprintln(p.in, h, steps, joint); err != nil {
			l.t.Errorf("process %d has gone: %v", p.life, err)
			return
		}
		busy[p] = true
	}
	for _, p := range l.lives {
		order(p, linearSteps)
	}
	for range l.rng.IntN(3) {
		for _, i := range l.disturb() {
			delete(busy, l.lives[i])
			l.lives[i] = l.start()
			order(l.lives[i], linearSteps/2)
		}
	}
	for p := range busy {
		l.await(p, h)
	}
	l.pace = (7*l.pace + time.Since(began)) / 8
	p := l.lives[l.rng.IntN(len(l.lives))]
	order(p, 0)
	l.await(p, h)
	for _, p := range l.lives {
		l.gather(p)
	}
	ops, deletions, wrong := linearHistory(l.events[h])
	delete(l.events, h)
	l.made++
	l.judge <- judged{h, ops, deletions, wrong}
}

// disturb stops a process for a while, or kills one or all, and returns those that
// are dead.
func (l *linear) disturb() []int {
	time.Sleep(time.Duration(l.rng.Int64N(int64(l.pace))))
	i := l.rng.IntN(len(l.lives))
	p := l.lives[i]
	kill := l.rng.IntN(2) == 0
	if !kill || l.rng.IntN(3) == 0 {
		l.stops++
		storetest.Stop(l.t, p.cmd.Process)
		time.Sleep(time.Duration(l.rng.Int64N(int64(l.pace))))
		if !kill {
			storetest.Continue(l.t, p.cmd.Process)
			return nil
		}
	}
	dead := []int{i}
	if l.rng.IntN(6) == 0 { // all, so that the next process has to recover
		dead = []int{0, 1, 2, 3}
	}
	for _, i := range dead {
		_ = l.lives[i].cmd.Process.Kill()
	}
	for _, i := range dead {
		l.end(l.lives[i], true)
	}
	return dead
}

// await waits until a process has done its part of a history.
func (l *linear) await(p *linearLife, h int) {
	late := time.NewTimer(linearPatience)
	defer late.Stop()
	for {
		select {
		case line, ok := <-p.said:
			if !ok {
				l.t.Fatalf("history %d: process %d has ended: %s", h, p.life, p.stderr.String())
			}
			l.heard(p, line)
			if line == fmt.Sprint("done ", h) {
				return
			}
		case <-late.C:
			_ = p.cmd.Process.Signal(syscall.SIGQUIT)
			time.Sleep(time.Second)
			l.t.Fatalf("history %d: process %d has not ended after %s:\n%s", h, p.life, linearPatience, p.stderr.String())
		}
	}
}

// judgeAll judges histories while others are produced.
func (l *linear) judgeAll() {
	defer close(l.done)
	for j := range l.judge {
		for _, w := range j.wrong {
			l.t.Errorf("history %d: %s", j.number, w)
		}
		l.ops += len(j.ops)
		for _, o := range j.ops {
			switch o.Output.(*linearOut).Result {
			case linearUnknown:
				l.unknown++
			case linearConflict:
				l.conflicts++
			}
		}
		switch result, info := linearJudge(j.ops, j.deletions); result {
		case porcupine.Ok:
		case porcupine.Unknown:
			l.t.Errorf("history %d of %d operations was not judged within %s:\n%s", j.number, len(j.ops), linearPatience, linearList(j.ops))
		default:
			path := filepath.Join(l.t.ArtifactDir(), fmt.Sprintf("history-%d.html", j.number))
			if err := porcupine.VisualizePath(linearModel, info, path); err != nil {
				l.t.Error(err)
			}
			l.t.Errorf("history %d is not linearizable; drawn in %s (-artifacts keeps it):\n%s", j.number, path, linearList(j.ops))
		}
	}
}
