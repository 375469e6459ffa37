package logs

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
)

// writingChild puts and deletes until it is killed, as a writer of its own, and prints what was
// acknowledged.
func writingChild(ctx context.Context, arg, dir string) error {
	o := fixture.BusyOptions()
	o.Writer = &varve.Writer{Program: "test", Agent: arg}
	st, err := varve.Open(ctx, dir, o)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		m, err := st.Put(ctx, varve.Memory{ID: fmt.Sprintf("%s-%d", arg, i%40), Content: strings.Repeat(arg, 100)})
		if err != nil {
			return err
		}
		fmt.Println(m.ID, m.Version)
		if i%9 == 8 {
			if err := st.Delete(ctx, m.ID); err != nil {
				return err
			}
			fmt.Println("-", 0)
		}
	}
}

// Processes are killed, from their first write on. Acknowledged writes have the right writer, and no
// number was issued twice.
func TestWritersKilled(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "s")
	st := fixture.Open(t, dir, fixture.BusyOptions())
	acked := map[uint64]string{} // by version
	agents := 0
	for round := range 6 {
		var names []string
		for i := range 2 {
			names = append(names, fmt.Sprintf("agent%d.%d", round, i))
		}
		type line struct {
			agent   string
			version uint64
		}
		lines := make(chan line)
		done := make(chan error)
		for i, name := range names {
			agents++
			cmd, out := storetest.Start(t, "writing:"+name, dir)
			go func() {
				for n := 0; n < 1+100*round*(i+1); n++ {
					text, err := out.ReadString('\n')
					var id string
					var l = line{agent: name}
					if err == nil {
						_, err = fmt.Sscan(text, &id, &l.version)
					}
					if err != nil {
						done <- fmt.Errorf("%s: %q: %w", name, text, err)
						return
					}
					lines <- l
				}
				err := cmd.Process.Kill()
				_ = cmd.Wait()
				done <- err
			}()
		}
		for left := len(names); left > 0; {
			select {
			case l := <-lines:
				if l.version != 0 {
					acked[l.version] = l.agent
				}
			case err := <-done:
				if left--; err != nil {
					t.Fatal(err)
				}
			}
		}
		if round%2 == 0 {
			if err := st.Admin().Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	found := 0
	for c, err := range st.Log(t.Context(), varve.LogOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, ch := range c.Changes {
			agent, _, _ := strings.Cut(ch.ID, "-")
			if c.Writer.Agent != agent {
				t.Fatalf("%s of %s by %+v", ch.What, ch.ID, c.Writer)
			}
			if acked[ch.LSN] != "" {
				found++
			}
		}
	}
	if found == 0 {
		t.Error("none of what was acknowledged is in the log")
	}
	all, err := st.Admin().Writers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[uint32]string{}
	for _, w := range all {
		if seen[w.Number] != "" {
			t.Errorf("the number %d was issued to %s and to %s", w.Number, seen[w.Number], w.Agent)
		}
		seen[w.Number] = w.Agent
	}
	if len(all) != agents {
		t.Errorf("%d writers, want %d", len(all), agents)
	}
}
