package offsite

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/working"
)

var (
	stormFor     = flag.Duration("storm", 20*time.Second, "how long TestStorm runs")
	stormMoments = flag.Int("storm.moments", 20, "how many random moments TestStorm restores")
)

// gone reports whether the n-th change of a key deletes it.
func gone(key string, n int) bool { return n%11 == 0 && key[0] != 'e' && key[0] != 'w' }

// storming writes memories, notes, assemblies and working memory, and edits files of memories by hand, until it is
// killed. It prints what writing prints.
func storming(ctx context.Context, _, dir string) error {
	o := inFolder(dir)
	st, err := varve.Open(ctx, filepath.Join(dir, "store"), o)
	if err != nil {
		return err
	}
	defer st.Close()
	s := &stormWriter{st: st, dir: filepath.Join(dir, "store"), n: map[string]int{}}
	who := os.Getpid()
	for i := 0; ctx.Err() == nil; i++ {
		key := fmt.Sprintf("%c%d-%d", "mmmmmmngwe"[i%10], who, i%30/10)
		n := s.n[key] + 1
		s.n[key] = n
		if err := told(key, n, func() error { return s.write(ctx, key, n) }); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

type stormWriter struct {
	st  *varve.Store
	dir string
	n   map[string]int // number of the last change of each key
}

func notePath(key string) string { return "storm/" + key + ".md" }

func (s *stormWriter) write(ctx context.Context, key string, n int) (err error) {
	del := gone(key, n)
	switch {
	case key[0] == 'n' && del:
		err = s.st.Notes().Delete(ctx, notePath(key))
	case key[0] == 'n':
		_, err = s.st.Notes().Write(ctx, notePath(key), []byte(textOf(n)))
	case key[0] == 'g' && del:
		err = s.st.Assemblies().Delete(ctx, key)
	case key[0] == 'g':
		_, err = s.st.Assemblies().Put(ctx, varve.Assembly{ID: key, Name: key, Description: textOf(n),
			MemoryIDs: []string{"m" + key[1:]}}, varve.AllowMissing())
	case key[0] == 'w':
		var m *working.Memory
		if m, err = s.st.Working().Open(ctx, working.Scope{Session: key}, nil); err == nil {
			err = errors.Join(m.Set(ctx, "k", textOf(n)), m.Close())
		}
	case key[0] == 'e' && n > 1:
		err = s.edit(ctx, key, n)
	case del:
		err = s.st.Delete(ctx, key)
	default:
		_, err = s.st.Put(ctx, varve.Memory{ID: key, Content: textOf(n)})
		if key[0] == 'e' {
			err = errors.Join(err, s.st.Flush(ctx))
		}
	}
	return err
}

var contentOf = regexp.MustCompile(`"content": "[^"]*"`)

// edit changes the file of a memory as an editor does, and waits until the store has adopted it.
func (s *stormWriter) edit(ctx context.Context, key string, n int) error {
	if err := s.st.Flush(ctx); err != nil {
		return err
	}
	name := filepath.Join(s.dir, "memories", key+".json")
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	b = contentOf.ReplaceAll(b, fmt.Appendf(nil, `"content": %q`, textOf(n)))
	if err := errors.Join(os.WriteFile(name+"~", b, 0o600), os.Rename(name+"~", name)); err != nil {
		return err
	}
	for began := time.Now(); ; {
		m, err := s.st.Get(ctx, key)
		if err != nil || m.Content == textOf(n) {
			return err
		}
		if time.Since(began) > time.Minute {
			return errors.New("an edit is not adopted")
		}
		time.Sleep(time.Millisecond)
	}
}

// stormSending sends to the sealed copy until it is killed.
func stormSending(ctx context.Context, _, dir string) error {
	o := inFolder(dir)
	o.Remote, o.SealRemote = varve.OpenFolder, seal
	st, err := varve.Open(ctx, filepath.Join(dir, "store"), o)
	if err != nil {
		return err
	}
	defer st.Close()
	fmt.Println("open")
	<-ctx.Done()
	return nil
}

// state returns the number of the last change of a key that a store has, 0 if it has nothing of the key.
func state(ctx context.Context, st *varve.Store, key string) (n int, err error) {
	text := ""
	switch key[0] {
	case 'n':
		var note varve.Note
		if note, err = st.Notes().Read(ctx, notePath(key)); err == nil {
			text = string(note.Content)
		}
	case 'g':
		var a varve.Assembly
		if a, err = st.Assemblies().Get(ctx, key); err == nil {
			text = a.Description
		}
	case 'w':
		var m *working.Memory
		if m, err = st.Working().Open(ctx, working.Scope{Session: key}, nil); err == nil {
			v, ok, gerr := m.Get(ctx, "k")
			if err = errors.Join(gerr, m.Close()); err == nil && !ok {
				return 0, nil
			}
			text, _ = v.(string)
		}
	default:
		var m varve.Memory
		if m, err = st.Get(ctx, key); err == nil {
			text = m.Content
		}
	}
	if errors.Is(err, errs.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if _, err := fmt.Sscanf(text, "number %d", &n); err != nil || text != textOf(n) {
		return 0, fmt.Errorf("%s has a text that was never written: %.100q", key, text)
	}
	return n, nil
}

// is compares a store with the record at a moment: each key has the last change that was acknowledged by then, or a
// later one that was begun by then.
func (r *record) is(t *testing.T, dir string, o *varve.Options, at int64) {
	t.Helper()
	st, err := varve.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for m, err := range st.Memories(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if r.writes[m.ID] == nil {
			t.Errorf("%s was never written", m.ID)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.writes)) {
		allowed := []int{0}
		for _, w := range r.writes[key] {
			n := w.n
			if gone(key, n) {
				n = 0
			}
			if w.acked != 0 && w.acked < at {
				allowed = []int{n}
			} else if w.began <= at {
				allowed = append(allowed, n)
			}
		}
		n, err := state(t.Context(), st, key)
		if err != nil {
			t.Errorf("%s at %d: %v", key, at, err)
		} else if !slices.Contains(allowed, n) {
			t.Errorf("%s at %d has change %d, and may have only %v", key, at, n, allowed)
		}
	}
}

// TestStorm: processes write all kinds of documents and edit files while the sender of a sealed copy is killed and the
// place is taken away. Random moments are restored and compared with the record of the writers, and nothing of the
// documents is in the place.
//
//	VARVE_LONG=1 go test ./tests/offsite -run 'TestStorm$' -storm 1h -storm.moments 200 -timeout 3h -v
func TestStorm(t *testing.T) {
	proofs.ManyProcesses(t, "writers and senders are processes")
	ctx, dir := t.Context(), t.TempDir()
	rng := rand.New(rand.NewPCG(storetest.Seed(t, "./tests/offsite"), 0))
	o := inFolder(dir)
	o.SealRemote = seal
	store, place := filepath.Join(dir, "store"), filepath.Join(dir, "remote")
	url := "file://" + filepath.ToSlash(place)
	st, err := varve.Open(ctx, store, o)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(err)
	r, err := varve.CreateFolder(ctx, url)
	check(err)
	ids := newIdentities(t, 2)
	signer, err := st.Admin().Offsite().AddSealed(ctx, r, url, ids.recipients())
	check(err)
	first, end := time.Now(), time.Now().Add(*stormFor)
	rec := &record{writes: map[string][]write{}}
	var reading sync.WaitGroup
	write := func() *exec.Cmd {
		cmd, lines := storetest.Start(t, "storm", dir)
		reading.Go(func() { rec.read(lines) })
		return cmd
	}
	writers := []*exec.Cmd{write(), write()}
	var lag []time.Duration // of each round whose place was there
	kills, away := 0, 0
	for time.Now().Before(end) {
		cmd, lines := storetest.Start(t, "stormsend", dir)
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		for until := time.Now().Add(time.Duration(1+rng.IntN(20)) * time.Second); time.Now().Before(until) &&
			time.Now().Before(end); {
			switch rng.IntN(4) {
			case 0: // the disk of the copy is away for a while
				away++
				check(os.Rename(place, place+".away"))
				time.Sleep(time.Duration(rng.IntN(3000)) * time.Millisecond)
				check(os.Rename(place+".away", place))
			case 1: // what was committed now is in the copy soon
				durable := storetest.Inner(st).Engine.Log().Durable()
				for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
					head, _, err := st.Admin().Offsite().Behind(ctx, r)
					check(err)
					if head.At.LSN >= durable {
						lag = append(lag, time.Since(began))
						break
					}
					if time.Since(began) > 2*time.Minute {
						t.Fatal("nothing is sent")
					}
				}
			default:
				time.Sleep(time.Duration(rng.IntN(500)) * time.Millisecond)
			}
		}
		kill(cmd)
		kills++
		if i := rng.IntN(8); i < len(writers) {
			kill(writers[i])
			writers[i] = write()
		}
	}
	for _, w := range writers {
		_ = w.Process.Kill()
	}
	reading.Wait() // before Wait, which closes the pipes
	for _, w := range writers {
		_ = w.Wait()
	}
	last := time.Now()
	check(st.Admin().Offsite().Send(ctx, r))
	check(st.Close())
	hiddenBelow(t, place, "number ", "storm/", "memories/", "assemblies/", "config.json", "varvepk")
	o.NoBackground = true
	restore := func(at time.Time) {
		t.Helper()
		to := filepath.Join(dir, "restored")
		_, err := varve.Clone(ctx, r, to, &varve.CloneOptions{At: at, Fork: true, Unseal: ids[:1].unseal,
			Signers: []string{signer}, Options: o})
		if err != nil {
			t.Fatalf("%v: %v", at, err)
		}
		if at.IsZero() {
			at = last
		}
		rec.is(t, to, o, at.UnixMicro())
		check(os.RemoveAll(to))
	}
	restore(time.Time{})
	for range *stormMoments {
		restore(first.Add(time.Duration(rng.Int64N(int64(last.Sub(first))))).Truncate(time.Microsecond))
	}
	slices.Sort(lag)
	if len(lag) == 0 {
		lag = append(lag, 0)
	}
	t.Logf("%v: %d acknowledged writes of %d documents, %d kills of the sender, the place %d times away; lag p50 %v, "+
		"most %v; %d moments", last.Sub(first).Round(time.Second), rec.acked, len(rec.writes), kills, away, lag[len(lag)/2],
		lag[len(lag)-1], *stormMoments)
}

// TestNothingInThePlace: of 10,000 memories in a sealed copy, no text, id, name or embedding is in any file of the
// place or in the name of one. The same search finds them in a copy that is not sealed.
func TestNothingInThePlace(t *testing.T) {
	n := 500
	if proofs.Long() {
		n = 10_000
	}
	for _, sealed := range []bool{false, true} {
		x, ctx := newOutsider(t), t.Context()
		x.seals()
		// The two halves are sent as a snapshot and as pieces.
		wanted := &wanted{at: map[uint64][]string{}}
		half := func(from, to int) {
			var batch []varve.Memory
			for i := from; i < to; i++ {
				m := varve.Memory{ID: fmt.Sprintf("id.%d.%x", i, i*i), Content: fmt.Sprintf("text.%d is %x", i, i*i*i),
					Embedding: make([]float32, 8), Metadata: map[string]any{"speaker": fmt.Sprintf("speaker.%d", i)}}
				for j := range m.Embedding {
					m.Embedding[j] = float32(math.Sin(float64(i*8 + j + 1)))
				}
				batch = append(batch, m)
				wanted.add(m)
			}
			_, err := x.st.PutAll(ctx, slices.Values(batch))
			x.check(err)
			x.check(x.st.Flush(ctx))
		}
		half(0, n/2)
		var err error
		if sealed {
			_, err = x.st.Admin().Offsite().AddSealed(ctx, x.remote, x.url, newIdentities(t, 2).recipients())
		} else {
			err = x.st.Admin().Offsite().Add(ctx, x.remote, x.url)
		}
		x.check(err)
		half(n/2, n)
		x.check(x.st.Admin().Offsite().Send(ctx, x.remote))
		found, size := wanted.search(t, filepath.Join(x.dir, "remote"))
		t.Logf("sealed %v: of %d memories, %d texts, ids, names and embeddings were found in %d bytes",
			sealed, n, found, size)
		if sealed && found > 0 || !sealed && found < n {
			t.Errorf("sealed %v: %d found", sealed, found)
		}
	}
}

// wanted are byte strings that are searched for, by their first eight bytes.
type wanted struct {
	at map[uint64][]string
}

func (w *wanted) add(m varve.Memory) {
	raw := []byte{}
	for _, v := range m.Embedding {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	for _, s := range []string{m.ID, m.Content, m.Metadata["speaker"].(string), fmt.Sprint(m.Embedding[0]) + ",",
		string(raw[:16]), base64.StdEncoding.EncodeToString(raw[:15]),
		base64.StdEncoding.EncodeToString([]byte(m.Content)[:9]), strings.ToUpper(m.Content)} {
		if len(s) < 8 {
			continue
		}
		at := binary.LittleEndian.Uint64([]byte(s))
		w.at[at] = append(w.at[at], s)
	}
}

// search returns how many occurrences there are in the files of a folder and in their names.
func (w *wanted) search(t *testing.T, folder string) (found, size int) {
	t.Helper()
	err := filepath.WalkDir(folder, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		size += len(b)
		b = append(append(b, '\n'), name...)
		for i := 0; i+8 <= len(b); i++ {
			for _, s := range w.at[binary.LittleEndian.Uint64(b[i:])] {
				if bytes.HasPrefix(b[i:], []byte(s)) {
					found++
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found, size
}
