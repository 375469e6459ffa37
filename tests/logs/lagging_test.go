package logs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/storetest"
)

const lagKeys = 40

func lagKey(i int) string { return fmt.Sprintf("k%02d", i) }

// lagging is a process that reads everything, and again each time that it is told to. It is stopped in
// between.
func lagging(ctx context.Context, mode, dir string) error {
	o := fixture.BusyOptions()
	o.NoBackground = true
	if o.ReadOnly = mode == "read-only"; o.ReadOnly {
		o = &varve.Options{ReadOnly: true}
	}
	st, err := varve.Open(ctx, dir, o)
	if err != nil {
		return err
	}
	for in := bufio.NewScanner(os.Stdin); ; {
		listed := map[string]string{}
		for m, err := range st.Memories(ctx) {
			if err != nil {
				return err
			}
			listed[m.ID] = storetest.StateOf(m, nil)
		}
		n, err := st.Count(ctx)
		if err != nil || int(n) != len(listed) {
			return fmt.Errorf("count %d, %w; %d are listed", n, err, len(listed))
		}
		for i := range lagKeys {
			state := storetest.StateOf(st.Get(ctx, lagKey(i)))
			if was := listed[lagKey(i)]; was != state && (was != "" || state != "-") {
				return fmt.Errorf("%s is %q, and listed as %q", lagKey(i), state, was)
			}
			if state == "-" {
				fmt.Println(lagKey(i), state)
				continue
			}
			hits, err := st.Search(ctx, varve.Query{Text: `"` + state + `"`, Limit: 1000})
			if err != nil || !slices.ContainsFunc(hits, func(h varve.Hit) bool { return h.ID == lagKey(i) }) {
				return fmt.Errorf("%s is %q, and not found by its words, but %d others: %v", lagKey(i), state, len(hits), err)
			}
			fmt.Println(lagKey(i), state)
		}
		fmt.Println("read")
		if !in.Scan() {
			return st.Close()
		}
		if !o.ReadOnly { // it writes from where the others are
			_, err := st.Put(ctx, varve.Memory{ID: "late", Content: storetest.Content("late", 9)}, varve.IfAbsent())
			if err != nil && !errors.Is(err, varve.ErrConflict) {
				return err
			}
		}
	}
}

// holding opens a document as any program does, reads half of it, and the rest when it is told to.
func holding(_ context.Context, _, dir string) error {
	f, err := os.Open(filepath.Join(dir, "memories", jsondoc.FileName(lagKey(0))))
	if err != nil {
		return err
	}
	half := make([]byte, 100)
	if _, err := io.ReadFull(f, half); err != nil {
		return err
	}
	fmt.Println("half")
	bufio.NewScanner(os.Stdin).Scan()
	rest, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	var m varve.Memory
	fmt.Println(storetest.StateOf(m, m.UnmarshalJSON(append(half, rest...))))
	return nil
}

// lagStates returns the states that a child prints, up to a word.
func lagStates(t *testing.T, out *bufio.Reader, end string) map[string]string {
	t.Helper()
	states := map[string]string{}
	for {
		line, err := out.ReadString('\n')
		if err != nil {
			t.Fatalf("the process that lags has ended: %v", err)
		}
		if line = strings.TrimSpace(line); line == end {
			return states
		}
		key, state, _ := strings.Cut(line, " ")
		states[key] = state
	}
}

// FAILURES 78 and 80: a process is stopped, and meanwhile everything that it knows is replaced: the log
// is recycled below its position, index and delta are rewritten and merged many times, its cache is
// outdated. When it continues it serves the present state, and can write.
func TestStoppedReader(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no SIGSTOP")
	}
	for _, mode := range []string{"read-write", "read-only"} {
		t.Run(mode, func(t *testing.T) {
			ctx := context.Background()
			dir := t.TempDir()
			o := fixture.BusyOptions()
			o.NoBackground = true
			st := fixture.Open(t, dir, o)
			want := map[string]string{}
			write := func(i, round int) {
				key, state := lagKey(i), fmt.Sprintf("%d.%d", round, i)
				if (i+round)%7 == 0 {
					if err := st.Delete(ctx, key); err != nil && !errors.Is(err, varve.ErrNotFound) {
						t.Fatal(err)
					}
					want[key] = "-"
					return
				}
				if _, err := st.Put(ctx, varve.Memory{ID: key, Content: storetest.Content(state, 500+13*i)}); err != nil {
					t.Fatal(err)
				}
				want[key] = state
			}
			for i := range lagKeys {
				write(i, 1)
			}
			cmd, out, in := storetest.StartTalking(t, "lag:"+mode, dir)
			expect := func(when string) {
				t.Helper()
				got := lagStates(t, out, "read")
				for key, state := range want {
					if got[key] != state {
						t.Errorf("%s: %s is %q, it should be %q", when, key, got[key], state)
					}
				}
			}
			expect("at first")
			for round, stop := range []string{"spilled", "recycled", "merged"} {
				storetest.StopIdle(t, cmd.Process, dir)
				seen := storetest.Inner(st).Engine.Log().Applied()
				for n := 2; ; n++ {
					for i := range lagKeys {
						write(i, 100*(round+1)+n)
					}
					flush := st.Flush
					if stop == "merged" || n%3 == 0 {
						flush = st.Admin().Compact
					}
					if err := flush(ctx); err != nil {
						t.Fatal(err)
					}
					// The position of the stopped process is no longer in the log.
					_, err := storetest.Inner(st).Engine.Log().ReadAt(ctx, seen)
					if gone := errors.Is(err, varve.ErrTruncated); n > 4 && (stop == "spilled" || gone) {
						break
					}
					if n > 100 {
						t.Fatalf("position %d has not left the log: %v", seen, err)
					}
				}
				fmt.Fprintln(in, "again")
				storetest.Continue(t, cmd.Process)
				expect(stop)
				if mode != "read-only" {
					if m, err := st.Get(ctx, "late"); err != nil || storetest.StateOf(m, err) != "late" {
						t.Errorf("what it wrote: %v", err)
					}
				}
			}
			_ = in.Close()
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

// FAILURES 63: another program has a document open, and is stopped in the middle of reading it, while
// its memory is written and flushed many times: it reads the old version completely.
func TestStoppedHolderOfAFile(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no SIGSTOP")
	}
	ctx := context.Background()
	dir := t.TempDir()
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	put := func(state string) {
		t.Helper()
		for i := range lagKeys {
			if _, err := st.Put(ctx, varve.Memory{ID: lagKey(i), Content: storetest.Content(state, 3000)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := st.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
	put("before")
	cmd, out, in := storetest.StartTalking(t, "holding", dir)
	lagStates(t, out, "half")
	storetest.Stop(t, cmd.Process)
	for n := range 10 {
		put(fmt.Sprint("after", n))
	}
	fmt.Fprintln(in, "go on")
	storetest.Continue(t, cmd.Process)
	line, err := out.ReadString('\n')
	if err != nil || strings.TrimSpace(line) != "before" {
		t.Errorf("who had it open has read %q, %v", line, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
