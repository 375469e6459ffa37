//go:build unix

package adopted

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/note"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
)

// promise is how long a content has to stand while a process watches, to be in the history.
const promise = time.Second

// span is a part of the time, in nanoseconds.
type span struct{ from, to int64 }

func (s span) within(o span) int64 { return max(0, min(s.to, o.to)-max(s.from, o.from)) }

// stalls records when this machine did not run the test, which then did not run a watcher either.
type stalls struct {
	mu   sync.Mutex
	list []span
}

func (s *stalls) watch(done <-chan struct{}) {
	const beat = 5 * time.Millisecond
	for last := time.Now(); ; {
		select {
		case <-done:
			return
		case <-time.After(beat):
		}
		if now := time.Now(); now.Sub(last) > 5*beat {
			s.mu.Lock()
			s.list = append(s.list, span{last.UnixNano(), now.UnixNano()})
			s.mu.Unlock()
			last = now
		} else {
			last = now
		}
	}
}

func (s *stalls) in(o span) (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, is := range s.list {
		n += is.within(o)
	}
	return n
}

// starved records how long threads of the adopters that were ready to run waited for a processor. On a machine with
// many runnable processes that is the greater part of the time: what a process does in 50 ms takes a second there.
type starved struct {
	mu      sync.Mutex
	samples []sample // in order of time
}

// sample is the time that the threads of the adopters had waited in all at a moment, in nanoseconds.
type sample struct{ at, waited int64 }

// watch follows one process until done is closed. It records nothing on systems that have no /proc/PID/task.
func (s *starved) watch(pid int, done <-chan struct{}) {
	last := map[string]int64{} // by thread
	for ; ; time.Sleep(20 * time.Millisecond) {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		more := int64(0)
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				continue
			}
			var ran, waited int64
			if _, err := fmt.Sscan(string(text), &ran, &waited); err == nil {
				more += waited - last[file]
				last[file] = waited
			}
		}
		s.mu.Lock()
		if n := len(s.samples); n > 0 {
			more += s.samples[n-1].waited
		}
		s.samples = append(s.samples, sample{time.Now().UnixNano(), more})
		s.mu.Unlock()
		select {
		case <-done:
			return
		default:
		}
	}
}

// in returns how long the threads waited in a part of the time.
func (s *starved) in(o span) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := func(moment int64) int64 {
		i, _ := slices.BinarySearchFunc(s.samples, moment, func(x sample, t int64) int { return cmp.Compare(x.at, t) })
		if i == len(s.samples) {
			i--
		}
		if i < 0 {
			return 0
		}
		return s.samples[i].waited
	}
	return min(max(0, at(o.to)-at(o.from)), o.to-o.from)
}

// TestMinute: two programs write an adopted folder with plain file operations, and the process that adopts it is killed
// again and again. Each content that stood for a second, unchanged and while a process watched, is in the history of
// its path, and in the end the notes are what the files are. The second is that of a process that has a processor when
// it needs one: the time in which the watcher's threads waited for one is added to it.
func TestMinute(t *testing.T) {
	if proofs.Race() {
		t.Skip("a second is the promise of a process that the race detector does not slow down")
	}
	seconds, adopter := 7, func(store string) *exec.Cmd {
		cmd, _ := storetest.Start(t, "adopt", store)
		return cmd
	}
	root := t.TempDir()
	store, vault := filepath.Join(root, "store"), filepath.Join(root, "vault")
	st, err := varve.Open(t.Context(), store, &varve.Options{NoBackground: true})
	must(t, err)
	defer st.Close()
	if proofs.Long() {
		seconds = 60
		memctl := filepath.Join(root, "memctl")
		t.Log("building memctl, which takes minutes on a busy machine")
		if out, err := exec.Command("go", "build", "-o", memctl, "../../cmd/memctl").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		must(t, os.Mkdir(vault, 0o700))
		if out, err := exec.Command(memctl, "note", "adopt", vault, "--store", store).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		adopter = func(store string) *exec.Cmd {
			cmd := exec.Command(memctl, "watch", "--adopt", "-q", "--store", store)
			must(t, cmd.Start())
			return cmd
		}
	} else {
		target := filepath.Join(store, "notes", "vault")
		must(t, os.MkdirAll(target, 0o700))
		must(t, os.Symlink(target, vault))
		line, err := json.Marshal(note.AdoptedFolder{Link: vault, Folder: "vault", State: note.Adopted})
		must(t, err)
		must(t, os.WriteFile(filepath.Join(store, "wal", "adopted"), append(line, '\n'), 0o600))
	}
	seed := proofs.Seed(t, 0)
	done := make(chan struct{})
	var stalled stalls
	var waited starved
	var wg sync.WaitGroup
	wg.Go(func() { stalled.watch(done) })

	var mu sync.Mutex
	var record []saved
	var programs sync.WaitGroup
	for i, name := range []string{"one", "two"} {
		cmd, out := storetest.Start(t, fmt.Sprintf("save:%s,%d,%d", name, seed+uint64(i), seconds), vault)
		programs.Go(func() {
			lines := json.NewDecoder(out)
			for {
				var s saved
				if err := lines.Decode(&s); err != nil {
					if !errors.Is(err, io.EOF) {
						t.Error(err)
					}
					break
				}
				mu.Lock()
				record = append(record, s)
				mu.Unlock()
			}
			if err := cmd.Wait(); err != nil {
				t.Error(name, err)
			}
		})
	}
	written := make(chan struct{})
	go func() { programs.Wait(); close(written) }()

	var watches []span
	random := rand.New(rand.NewPCG(seed, 2))
	kills := 0
	for running := true; running; {
		cmd := adopter(store)
		killed := make(chan struct{})
		wg.Go(func() { waited.watch(cmd.Process.Pid, killed) })
		var w span
		for began := time.Now(); ; time.Sleep(2 * time.Millisecond) {
			if st.Admin().Stats().Watcher == cmd.Process.Pid {
				w.from = time.Now().UnixNano()
				break
			}
			if time.Since(began) > 30*time.Second {
				t.Fatal("the adopter does not watch")
			}
		}
		select {
		case <-written:
			running = false
			time.Sleep(promise) // the last contents are due, too
		case <-time.After(time.Duration(1500+random.IntN(3000)) * time.Millisecond):
			kills++
			t.Logf("killed %d adopters", kills)
		}
		w.to = time.Now().UnixNano()
		close(killed)
		must(t, cmd.Process.Kill())
		_ = cmd.Wait()
		watches = append(watches, w)
	}
	close(done)
	wg.Wait()

	due, missed, starving, excused := 0, 0, 0, 0
	for path, list := range standing(record, time.Now().UnixNano()) {
		has := map[string]bool{}
		for v, err := range st.Notes().History(t.Context(), "vault/"+path) {
			must(t, err)
			if !v.Deleted {
				has[fmt.Sprintf("%x", v.ContentHash)] = true
			}
		}
		for _, s := range list {
			need := promise
			if s.Hash == hashOf(nil) {
				need += emptied
			}
			for _, w := range watches {
				stood := span{s.Begin, s.End}
				both := span{max(s.Begin, w.from), min(s.End, w.to)}
				if stood.within(w) < int64(need)+stalled.in(both) {
					continue
				}
				if slow := waited.in(both); stood.within(w) < int64(need)+slow {
					starving++
					if !has[s.Hash] {
						excused++
						t.Logf("%s, %s: stood %v while a process watched, whose threads waited %v for a processor, "+
							"and is not in the history", path, s.How, time.Duration(stood.within(w)), time.Duration(slow))
					}
					continue
				}
				if due++; !has[s.Hash] {
					missed++
					t.Log(trail(t, st, path, record, watches, s.Begin))
					t.Errorf("%s, %s: stood %v while a process watched, and is not in the history", path, s.How,
						time.Duration(stood.within(w)))
				}
				break
			}
		}
	}
	t.Logf("seed %d: %d saves, %d kills, %d contents were due, %d missed; of %d during which the watcher waited for a "+
		"processor, %d are missing", seed, len(record), kills, due, missed, starving, excused)
	if due == 0 && starving == 0 {
		t.Error("no content was due")
	}
	_, err = st.Notes().AdoptFiles(t.Context(), "")
	must(t, err)
	equal(t, st, vault)
}

// standing returns, by path, the contents that stood, each from Begin to End. What two programs wrote at once is not
// known.
func standing(record []saved, end int64) map[string][]saved {
	byPath, list := map[string][]saved{}, map[string][]saved{}
	for _, s := range record {
		byPath[s.Path] = append(byPath[s.Path], s)
	}
	for path, all := range byPath {
		slices.SortFunc(all, func(a, b saved) int { return int(a.Begin - b.Begin) })
		for i, s := range all {
			next, until := end, s.End
			if i+1 < len(all) {
				next = all[i+1].Begin
			}
			for _, before := range all[:i] {
				until = max(until, before.End)
			}
			if s.Hash != "" && until == s.End && next > s.End {
				list[path] = append(list[path], saved{path, s.Hash, s.End, next, s.How})
			}
		}
	}
	return list
}

// equal compares the files of an adopted folder and the notes.
func equal(t *testing.T, st *varve.Store, vault string) {
	t.Helper()
	notes := map[string]bool{}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		clear(notes)
		gone := ""
		for e, err := range st.Notes().List(t.Context(), "vault", 0) {
			must(t, err)
			notes[e.Path] = true
			if _, err := os.Lstat(filepath.Join(vault, filepath.FromSlash(e.Path[len("vault/"):]))); err != nil {
				gone = e.Path // a read adopts its deletion, once the folder is quiet
				_, _ = st.Notes().Read(t.Context(), gone)
			}
		}
		if gone == "" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%s has no file, and is not deleted", gone)
		}
	}
	must(t, filepath.WalkDir(vault+string(filepath.Separator), func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name()[0] == '.' || d.Name()[len(d.Name())-1] == '~' {
			return err
		}
		rel, err := filepath.Rel(vault, path)
		must(t, err)
		data, err := os.ReadFile(path)
		must(t, err)
		n, err := st.Notes().Read(t.Context(), "vault/"+filepath.ToSlash(rel))
		if err != nil || string(n.Content) != string(data) {
			t.Errorf("%s: %d bytes, the file has %d: %v", rel, len(n.Content), len(data), err)
		}
		return nil
	}))
	must(t, st.Flush(t.Context()))
	storetest.AllWell(t, st.Admin().Verify(t.Context(), varve.VerifyOptions{}))
}

// trail returns what happened around a moment, in seconds from it: what was done to a file, its versions, and when a
// process watched.
func trail(t *testing.T, st *varve.Store, path string, record []saved, watches []span, at int64) string {
	type line struct {
		at   int64
		text string
	}
	var list []line
	for _, s := range record {
		if s.Path == path || s.How == "moved" {
			list = append(list, line{s.End, fmt.Sprintf("%s %.8s %s", s.How, s.Hash, s.Path)})
		}
	}
	for _, w := range watches {
		list = append(list, line{w.from, "watches"}, line{w.to, "killed"})
	}
	for v, err := range st.Notes().History(t.Context(), "vault/"+path) {
		must(t, err)
		list = append(list, line{v.Time.UnixNano(), fmt.Sprintf("version %.8x, deleted %v", v.ContentHash, v.Deleted)})
	}
	slices.SortStableFunc(list, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	var b strings.Builder
	for _, l := range list {
		fmt.Fprintf(&b, "\n%8.3f %s", float64(l.at-at)/1e9, l.text)
	}
	return b.String()
}
