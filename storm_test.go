package varve

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/docfile"
)

var (
	stormFor  = flag.Duration("storm", 0, "how long TestStorm runs; 0: some seconds")
	stormSeed = flag.Uint64("storm.seed", 0, "the seed of TestStorm; 0: another one each time")
)

// storm is several processes in one store, killed, stopped and replaced at random.
type storm struct {
	t       *testing.T
	dir     string
	rng     *rand.Rand
	told    *told
	lives   int
	backups int
}

// life is one process.
type life struct {
	slot  int
	cmd   *exec.Cmd
	stdin io.Closer
	done  chan struct{} // its output was read to the end
	err   error
}

// Several processes write, read, flush, list and look while they are killed and
// stopped at random. What they were told is kept outside the store, and after each
// round compared with it, with the files, and with a backup that ran beside them.
//
//	go test -run TestStorm . -storm 10m
//	go test -run TestStorm . -storm.seed N      the same choices again; what the machine makes of them may differ
func TestStorm(t *testing.T) {
	seed := *stormSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d; again: go test -run TestStorm . -storm.seed %d", seed, seed)
	s := &storm{t: t, dir: filepath.Join(t.TempDir(), "store"), rng: rand.New(rand.NewPCG(seed, 1)), told: newTold()}
	s.create()
	long := max(*stormFor, 4*time.Second)
	if testing.Short() {
		long = time.Second
	}
	for end := time.Now().Add(long); time.Now().Before(end) && !t.Failed(); {
		s.round(min(long, 2*time.Second))
	}
	c := &s.told.counter
	t.Logf("%d lives, %d killed, %d stopped; %d operations answered, %d keys, counted to %d; %d backups",
		s.lives, s.told.kills, s.told.stops, s.told.ops, len(s.told.keys), c.acked, s.backups)
}

func (s *storm) create() {
	st, err := Open(context.Background(), s.dir, stormOptions())
	if err == nil {
		_, err = st.Put(context.Background(), Memory{ID: stormCounter, Content: "0"})
		err = errors.Join(err, st.Close())
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *storm) round(long time.Duration) {
	lives := make([]*life, 2+s.rng.IntN(3))
	for i := range lives {
		lives[i] = s.start(i)
	}
	var beside sync.WaitGroup
	if s.rng.IntN(2) == 0 {
		beside.Go(s.backup)
	}
	for end := time.Now().Add(long); time.Now().Before(end); {
		time.Sleep(time.Duration(s.rng.IntN(100)) * time.Millisecond)
		l := lives[s.rng.IntN(len(lives))]
		switch s.rng.IntN(6) {
		case 0:
			s.end(l, false)
			lives[l.slot] = s.start(l.slot)
		case 1, 2:
			s.end(l, true)
			lives[l.slot] = s.start(l.slot)
		default:
			if runtime.GOOS == "windows" {
				continue
			}
			s.told.stops++
			stopProcess(s.t, l.cmd.Process)
			time.Sleep(time.Duration(s.rng.IntN(60)) * time.Millisecond)
			if s.rng.IntN(3) > 0 {
				contProcess(s.t, l.cmd.Process)
				continue
			}
			s.end(l, true)
			lives[l.slot] = s.start(l.slot)
		}
	}
	kill := s.rng.IntN(3) > 0
	if kill { // all at once, so that somebody has to recover
		for _, l := range lives {
			_ = l.cmd.Process.Kill()
		}
	}
	for _, l := range lives {
		s.end(l, kill)
	}
	beside.Wait()
	s.check()
}

func (s *storm) start(slot int) *life {
	s.lives++
	l := &life{slot: slot, done: make(chan struct{})}
	job := fmt.Sprintf("storm:%d:%d:%d", slot, s.lives, s.rng.Uint64())
	l.cmd = exec.Command(os.Args[0], "-test.run=^$")
	l.cmd.Env = append(os.Environ(), "VARVE_CHILD="+job, "VARVE_DIR="+s.dir)
	var stderr strings.Builder
	l.cmd.Stderr = &stderr
	in, err := l.cmd.StdinPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	l.stdin = in
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := l.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	name := fmt.Sprintf("life %d", s.lives)
	go func() {
		defer close(l.done)
		for r := bufio.NewReader(out); ; {
			text, err := r.ReadString('\n')
			if err != nil {
				break // a line that was cut was not acknowledged to us
			}
			s.told.line(name, strings.TrimSpace(text))
		}
		l.err = l.cmd.Wait()
		if stderr.Len() > 0 {
			l.err = errors.New(stderr.String())
		}
	}()
	return l
}

// end kills a process, or asks it to close the store and end.
func (s *storm) end(l *life, kill bool) {
	if kill {
		s.told.kills++
		_ = l.cmd.Process.Kill()
		<-l.done
		if l.err != nil && strings.Contains(l.err.Error(), "\n") { // it had something to say before
			s.t.Errorf("process of slot %d: %v", l.slot, l.err)
		}
		return
	}
	_ = l.stdin.Close()
	<-l.done
	if l.err != nil {
		s.t.Errorf("process of slot %d, which was asked to end: %v", l.slot, l.err)
	}
}

// backup is taken while the processes work, and compared with what they did since.
func (s *storm) backup() {
	ctx := context.Background()
	since := s.told.settledRows()
	st, err := Open(ctx, s.dir, stormOptions())
	if err != nil {
		s.t.Errorf("open for a backup: %v", err)
		return
	}
	defer st.Close()
	s.backups++
	to := backupDir(s.dir, s.backups)
	if _, err := st.Backup(ctx, to, BackupOptions{}); err != nil {
		if !errors.Is(err, ErrLimit) { // more was written than the log may keep
			s.t.Errorf("backup: %v", err)
		}
		return
	}
	restored := to + "-restored"
	if _, err := Restore(ctx, to, restored, nil); err != nil {
		s.t.Errorf("restore: %v", err)
		return
	}
	copied, err := Open(ctx, restored, nil)
	if err != nil {
		s.t.Errorf("open what was restored: %v", err)
		return
	}
	defer copied.Close()
	states := map[string]string{}
	for key := range s.told.settledRows() {
		states[key] = oneState(key, func(id string) string { return stateOf(copied.Get(ctx, id)) })
	}
	s.told.checkSince(since, func(key string) string {
		if state, ok := states[key]; ok {
			return state
		}
		return "-"
	})
	for _, dir := range []string{to, restored} {
		if err := os.RemoveAll(dir); err != nil {
			s.t.Error(err)
		}
	}
}

// check opens the store alone and compares everything.
func (s *storm) check() {
	s.t.Helper()
	ctx := context.Background()
	st, err := Open(ctx, s.dir, stormOptions())
	if err != nil {
		s.t.Fatalf("open after a round: %v", err)
	}
	defer st.Close()
	if r := st.OpenReport(); r.Damage != nil || r.Rebuilt != nil || r.Healed != nil || r.ProblemCount > 0 {
		s.t.Errorf("nothing was damaged, but: %+v", r)
	}
	s.told.check(func(key string) string {
		return oneState(key, func(id string) string { return stateOf(st.Get(ctx, id)) })
	})
	c := &s.told.counter
	m, err := st.Get(ctx, stormCounter)
	var n int
	if _, serr := fmt.Sscanf(m.Content, "%d", &n); err != nil || serr != nil || n < c.acked || n > c.begun {
		s.t.Errorf("the counter is at %q, %v: %d acknowledged, %d begun", m.Content, err, c.acked, c.begun)
	}
	if err := st.Flush(ctx); err != nil {
		s.t.Errorf("flush: %v", err)
	}
	s.told.check(func(key string) string { return oneState(key, s.fileState) })
	expectClean(s.t, st, s.dir)
	for _, w := range s.told.wrong {
		s.t.Error(w)
	}
}

// expectClean verifies a store, and that nobody left or set aside anything.
func expectClean(t *testing.T, st *Store, dir string) {
	t.Helper()
	for f, err := range st.Verify(context.Background(), VerifyOptions{}) {
		if err != nil || f.Severity != SeverityInfo {
			t.Errorf("verify: %+v, %v", f, err)
		}
	}
	for _, pattern := range []string{"quarantine/*.json", "wal/*.new", "*.new", "tmp/*/*.new"} {
		if left, _ := filepath.Glob(filepath.Join(dir, pattern)); len(left) > 0 {
			var text []byte
			for _, name := range left[:min(len(left), 6)] {
				b, _ := os.ReadFile(name)
				text = fmt.Appendf(text, "%.1000s\n", b)
			}
			t.Errorf("%d left behind, though nobody edited anything: %v\n%s", len(left), left, text)
		}
	}
}

// fileState reads a memory's file as anybody would.
func (s *storm) fileState(id string) string {
	b, err := os.ReadFile(filepath.Join(s.dir, "memories", docfile.FileName(id)))
	if errors.Is(err, os.ErrNotExist) {
		return "-"
	}
	var m Memory
	if err == nil {
		err = m.UnmarshalJSON(b)
	}
	return stateOf(m, err)
}
