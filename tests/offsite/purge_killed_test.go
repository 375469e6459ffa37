package offsite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/remote"
)

// purging purges the memory "secret" from the store and from its copy. It prints a line before each, and one when it
// is done.
func purging(ctx context.Context, _, dir string) error {
	o := inFolder(dir)
	o.NoBackground = true
	st, err := varve.Open(ctx, filepath.Join(dir, "store"), o)
	if err != nil {
		return err
	}
	defer st.Close()
	r, err := varve.OpenFolder(ctx, "file://"+filepath.ToSlash(filepath.Join(dir, "remote")))
	if err != nil {
		return err
	}
	fmt.Println("open")
	if _, err := st.Admin().Purge(ctx, "secret"); err != nil && !errors.Is(err, varve.ErrNotFound) {
		return err
	}
	fmt.Println("copy")
	if err := st.Admin().Offsite().PurgeNow(ctx, r); err != nil {
		return err
	}
	fmt.Println("done")
	return nil
}

// spotted is a moment, and the number of the memory "a" at it.
type spotted struct {
	at time.Time
	n  int
}

// TestKilledPurge: a purge of the store and of its copy is killed at random moments and begun again, until one ends.
// Then neither has the text, in any file, and each moment that was promised can be cloned, without the text.
func TestKilledPurge(t *testing.T) {
	proofs.ManyProcesses(t, "the purges are processes")
	rng := rand.New(rand.NewPCG(storetest.Seed(t, "./tests/offsite"), 0))
	took := killedPurge(t, rng, 0, 0).took
	var all killed
	rounds := storetest.Repeat(t, 20)
	for range rounds {
		k := killedPurge(t, rng, 1+rng.IntN(8), took)
		all.kills, all.inCopy, all.moments = all.kills+k.kills, all.inCopy+k.inCopy, all.moments+k.moments
	}
	t.Logf("%d purges, %d kills, %d of them in the copy, %d moments cloned", rounds, all.kills, all.inCopy, all.moments)
}

// killed describes a purge that was killed.
type killed struct {
	kills   int
	inCopy  int           // kills while the copy was purged
	moments int           // moments that were cloned
	took    time.Duration // duration of the last attempt
}

// killedPurge kills a purge up to most times, each time after up to so long.
func killedPurge(t *testing.T, rng *rand.Rand, most int, after time.Duration) (k killed) {
	ctx := t.Context()
	x := &outsider{t: t, dir: t.TempDir()}
	x.o, x.url = inFolder(x.dir), "file://"+filepath.ToSlash(filepath.Join(x.dir, "remote"))
	x.o.NoBackground = true
	x.open()
	r, err := varve.CreateFolder(ctx, x.url)
	x.check(err)
	x.remote = r
	var seen []spotted
	n := 0
	more := func(count int) {
		for range count {
			n++
			x.put("a", fmt.Sprintf("number %d", n))
			seen = append(seen, spotted{time.Now().Truncate(time.Microsecond), n})
			time.Sleep(2 * time.Microsecond) // the next commit has a later time
		}
	}
	// A snapshot without the text, which a purge keeps, and one with it, which a purge drops: a new epoch begins with a
	// snapshot.
	of := x.st.Admin().Offsite()
	more(20)
	x.check(of.Add(ctx, r, x.url))
	more(20)
	x.put("secret", text)
	more(20)
	x.check(of.Send(ctx, r))
	d := &diary{outsider: x}
	if !d.has(filepath.Join(x.dir, "remote")) || !d.has(filepath.Join(x.dir, "store")) {
		t.Fatal("the test cannot see what is purged")
	}
	loss, err := of.PurgeLoses(ctx, r, []string{"secret"}, nil)
	x.check(err)
	x.check(x.st.Close())
	for done := false; !done; {
		cmd, lines := storetest.Start(t, "purge", x.dir)
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		kill := make(<-chan time.Time)
		if k.kills < most {
			kill = time.After(time.Duration(rng.Int64N(int64(after))))
		}
		began := time.Now()
		ended := make(chan string, 1)
		go func() {
			rest, _ := io.ReadAll(lines)
			ended <- string(rest)
		}()
		select {
		case said := <-ended:
			x.check(cmd.Wait())
			if done = strings.HasSuffix(said, "done\n"); !done {
				t.Fatalf("a purge ended without being done: %q", said)
			}
			k.took = time.Since(began)
		case <-kill:
			_ = cmd.Process.Kill()
			said := <-ended
			_ = cmd.Wait()
			if k.kills++; strings.Contains(said, "copy\n") {
				k.inCopy++
			}
		}
	}
	for _, folder := range []string{"store", "remote"} {
		if d.has(filepath.Join(x.dir, folder)) {
			t.Fatalf("after %d kills %s has what was purged", k.kills, folder)
		}
	}
	v, err := remote.Verify(ctx, r, true)
	if err != nil || len(v.Damage) > 0 || !v.Restorable {
		t.Fatalf("after %d kills: %+v, %v", k.kills, v, err)
	}
	for _, i := range rng.Perm(len(seen))[:8] {
		at, lost := seen[i].at, false
		if !loss.From.IsZero() {
			lost = !at.Before(loss.From) && at.Before(loss.To)
		}
		to := filepath.Join(x.dir, "clone")
		_, err := varve.Clone(ctx, r, to, &varve.CloneOptions{At: at, Options: x.o})
		if errors.Is(err, varve.ErrNotFound) && (lost || i < 20) { // before the first snapshot
			continue
		}
		if err != nil {
			t.Fatalf("after %d kills, moment %d (loses %+v): %v", k.kills, i, loss, err)
		}
		if k.moments++; d.has(to) {
			t.Fatalf("moment %d: the clone has what was purged", i)
		}
		o := *x.o
		o.ReadOnly = true
		st, err := varve.Open(ctx, to, &o)
		x.check(err)
		m, err := st.Get(ctx, "a")
		if want := fmt.Sprintf("number %d", seen[i].n); err != nil || m.Content != want {
			t.Fatalf("moment %d has %q, want %q: %v", i, m.Content, want, err)
		}
		if _, err := st.Get(ctx, "secret"); !errors.Is(err, varve.ErrNotFound) {
			t.Fatalf("moment %d has the memory that was purged: %v", i, err)
		}
		x.check(st.Close())
		x.check(os.RemoveAll(to))
	}
	return k
}
