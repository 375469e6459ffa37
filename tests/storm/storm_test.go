package storm

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

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/acklog"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
)

var (
	stormFor  = flag.Duration("storm", 0, "how long TestStorm runs; 0: some seconds, with VARVE_LONG=1 2 minutes")
	stormSeed = flag.Uint64("storm.seed", 0, "the seed of TestStorm; 0: another one each time")
)

// storm is several processes on one store, killed, stopped and replaced at random.
type storm struct {
	t       *testing.T
	dir     string
	rng     *rand.Rand
	told    *acklog.Record
	lives   int
	backups int
	rounds  int
	kills   int
	stops   int
	long    bool

	editor *rand.Rand
	edited [stormEdited]string // what was saved last
	edits  int

	elder           *life // the process that lives through many rounds; nil: none
	began, lookedAt time.Time
	most            stormFigures // of all
	young, old      stormFigures // of the elder: after its first round, and at most
}

// life is one process.
type life struct {
	slot  int
	cmd   *exec.Cmd
	stdin io.Closer
	done  chan struct{} // its output was read to the end
	err   error
}

// Several processes write, read, search, flush, list and look while they are killed and stopped at
// random, beside an editor of files by hand. Their acknowledged operations are recorded outside the
// store, and after each round compared with the store, with the files, and with a backup that was made
// meanwhile. One process lives through many rounds, and must not grow; nor must the store.
//
//	go test -run TestStorm ./tests/storm -storm 10m -timeout 30m -v      eight processes at a time
//	go test -run TestStorm ./tests/storm -storm.seed N      the same choices again; what the machine makes of them may differ
func TestStorm(t *testing.T) {
	seed := proofs.Seed(t, *stormSeed)
	s := &storm{t: t, dir: filepath.Join(t.TempDir(), "store"), rng: rand.New(rand.NewPCG(seed, 1)), editor: rand.New(rand.NewPCG(seed, 2)),
		told: acklog.New(), began: time.Now(), lookedAt: time.Now()}
	s.create()
	long := max(*stormFor, 4*time.Second)
	switch {
	case *stormFor == 0 && proofs.Long():
		long = 2 * time.Minute
	case *stormFor == 0:
		long = time.Second
	}
	s.long = long >= time.Minute
	each := min(long, 2*time.Second)
	if s.long {
		each = 5 * time.Second
	}
	for end := time.Now().Add(long); time.Now().Before(end) && !t.Failed(); {
		s.rounds++
		s.round(each)
	}
	s.bury()
	c := &s.told.Counter
	t.Logf("%d rounds: %d lives, %d killed, %d stopped; %d operations answered, %d keys, counted to %d; %d backups, %d edits by hand",
		s.rounds, s.lives, s.kills, s.stops, s.told.Ops, s.told.Len(), c.Acked, s.backups, s.edits)
	t.Logf("at most %s", s.most)
}

func (s *storm) create() {
	st, err := varve.Open(context.Background(), s.dir, stormOptions())
	if err == nil {
		_, err = st.Put(context.Background(), varve.Memory{ID: stormCounter, Content: "0"})
		for k := range stormEdited {
			s.edited[k] = "e0"
			_, perr := st.Put(context.Background(), varve.Memory{ID: editedID(k), Content: storetest.Content("e0", 10)})
			err = errors.Join(err, perr)
		}
		err = errors.Join(err, st.Close())
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// elderRounds is the number of rounds of a long storm through which one process lives; in as many others
// no process does, and killed processes leave the store to be recovered.
const elderRounds = 20

func (s *storm) round(long time.Duration) {
	switch in := s.rounds / elderRounds % 2; {
	case s.long && in == 0 && s.elder == nil:
		s.elder, s.old = s.startAs(0, stormElder), stormFigures{}
	case in == 1:
		s.bury()
	}
	lives := make([]*life, 2+s.rng.IntN(3))
	if s.long {
		lives = make([]*life, 8)
	}
	for i := range lives {
		lives[i] = s.start(i)
	}
	var beside sync.WaitGroup
	if s.rng.IntN(2) == 0 {
		beside.Go(s.backup)
	}
	if s.rng.IntN(2) == 0 {
		beside.Go(func() { s.edit(s.rounds) })
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
			if s.elder != nil && s.rng.IntN(4) == 0 {
				s.stop(s.elder) // and the log continues without it
				storetest.Continue(s.t, s.elder.cmd.Process)
				continue
			}
			s.stop(l)
			if s.rng.IntN(3) > 0 {
				storetest.Continue(s.t, l.cmd.Process)
				continue
			}
			s.end(l, true)
			lives[l.slot] = s.start(l.slot)
		}
	}
	s.look(lives)
	kill := s.rng.IntN(3) > 0
	if kill { // all at once, so that the next process has to recover
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

// stop stops a process for a moment; in a long storm sometimes for long enough that all of the log that
// it knew is recycled.
func (s *storm) stop(l *life) {
	s.stops++
	storetest.Stop(s.t, l.cmd.Process)
	pause := time.Duration(s.rng.IntN(60)) * time.Millisecond
	if s.long && s.rng.IntN(10) == 0 {
		pause = time.Duration(s.rng.IntN(2000)) * time.Millisecond
	}
	time.Sleep(pause)
}

// bury ends the process that has lived long, and compares the resources that it used at the end with
// those that it used at the beginning.
func (s *storm) bury() {
	if s.elder == nil {
		return
	}
	last := figuresOf("", s.elder.cmd.Process.Pid)
	s.t.Logf("the one that lived long: %d handles and %d KiB at first, %d and %d at most, %d and %d in the end",
		s.young.handles, s.young.memory, s.old.handles, s.old.memory, last.handles, last.memory)
	if s.young.handles > 0 && (last.handles > 2*s.young.handles+20 || last.memory > 2*s.young.memory+32<<10) {
		s.t.Errorf("a process grows while others come and go: %s at first, %s in the end", s.young, last)
	}
	s.end(s.elder, false)
	s.elder, s.young = nil, stormFigures{}
}

func (s *storm) start(slot int) *life { return s.startAs(slot, fmt.Sprint(slot)) }

func (s *storm) startAs(slot int, name string) *life {
	s.lives++
	l := &life{slot: slot, done: make(chan struct{})}
	job := fmt.Sprintf("storm:%s:%d:%d", name, s.lives, s.rng.Uint64())
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
	who := fmt.Sprintf("life %d", s.lives)
	go func() {
		defer close(l.done)
		for r := bufio.NewReader(out); ; {
			text, err := r.ReadString('\n')
			if err != nil {
				break // a line that was cut was not acknowledged to us
			}
			s.told.Line(who, strings.TrimSpace(text))
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
		s.kills++
		_ = l.cmd.Process.Kill()
		<-l.done
		if l.err != nil && strings.Contains(l.err.Error(), "\n") { // it may have printed something before
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

// backup makes a backup while the processes work, and compares it with what they did since.
func (s *storm) backup() {
	ctx := context.Background()
	since := s.told.Settled()
	st, err := varve.Open(ctx, s.dir, stormOptions())
	if err != nil {
		s.t.Errorf("open for a backup: %v", err)
		return
	}
	defer st.Close()
	s.backups++
	to := backupDir(s.dir, s.backups)
	if _, err := st.Backup(ctx, to, varve.BackupOptions{}); err != nil {
		if !errors.Is(err, varve.ErrLimit) { // more was written than the log may keep
			s.t.Errorf("backup: %v", err)
		}
		return
	}
	restored := to + "-restored"
	if _, err := varve.Restore(ctx, to, restored, nil); err != nil {
		s.t.Errorf("restore: %v", err)
		return
	}
	copied, err := varve.Open(ctx, restored, nil)
	if err != nil {
		s.t.Errorf("open what was restored: %v", err)
		return
	}
	defer copied.Close()
	states := map[string]string{}
	for key := range s.told.Settled() {
		states[key] = storetest.OneState(key, statesIn(copied))
	}
	s.told.CheckSince(since, func(key string) string {
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

// check opens the store while no process writes and compares everything.
func (s *storm) check() {
	s.t.Helper()
	ctx := context.Background()
	st, err := varve.Open(ctx, s.dir, stormOptions())
	if err != nil {
		s.t.Fatalf("open after a round: %v", err)
	}
	defer st.Close()
	if r := st.Admin().OpenReport(); r.Damage != nil || r.Rebuilt != nil || r.Healed != nil || r.ProblemCount > 0 {
		s.t.Errorf("nothing was damaged, but: %+v", r)
	}
	if s.elder != nil {
		// No process recovered the log: what killed processes had written and not synced becomes durable
		// with the next commit.
		if _, err := st.Put(ctx, varve.Memory{ID: "settled", Content: fmt.Sprint(s.rounds)}); err != nil {
			s.t.Errorf("put after a round: %v", err)
		}
	}
	s.told.Check(func(key string) string { return storetest.OneState(key, statesIn(st)) })
	s.checkEdits(st)
	c := &s.told.Counter
	m, err := st.Get(ctx, stormCounter)
	var n int
	if _, serr := fmt.Sscanf(m.Content, "%d", &n); err != nil || serr != nil || n < c.Acked || n > c.Begun {
		s.t.Errorf("the counter is at %q, %v: %d acknowledged, %d begun", m.Content, err, c.Acked, c.Begun)
	}
	if err := st.Flush(ctx); err != nil {
		s.t.Errorf("flush: %v", err)
	}
	s.told.Check(func(key string) string { return storetest.OneState(key, storetest.StatesBelow(s.dir)) })
	if r, err := storetest.CheckVectors(ctx, st); err != nil || r.Drift() > 0 || len(r.Unread) > 0 {
		s.t.Errorf("vectors: %+v, %v", r, err)
	}
	storetest.ExpectClean(s.t, st.Admin().Verify(context.Background(), varve.VerifyOptions{}), s.dir, s.elder == nil)
	for _, w := range s.told.Wrong {
		s.t.Error(w)
	}
}

// statesIn returns a function that reads states from a store.
func statesIn(st *varve.Store) func(id string) string {
	return func(id string) string {
		switch {
		case storetest.IsNote(id):
			n, err := st.Notes().Read(context.Background(), storetest.NotePath(id))
			if err != nil {
				return storetest.NoState(err)
			}
			return storetest.Stated(string(n.Content))
		case !storetest.IsGroup(id):
			return storetest.StateOf(st.Get(context.Background(), id))
		}
		a, err := st.Assemblies().Get(context.Background(), id)
		if err != nil {
			return storetest.NoState(err)
		}
		return storetest.Stated(a.Description)
	}
}
