//go:build unix

package storm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/acklog"
	"github.com/varve-db/varve/internal/storetest"
)

// A process may open a limited number of files, from none to more than enough. Every failure gives the
// reason; nothing is treated as damaged, set aside or lost; and once the limit is lifted the same handle
// does everything (FAILURES 17).
func TestFewFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	cmd, out := storetest.Start(t, "few files", dir)
	var said strings.Builder
	for {
		line, err := out.ReadString('\n')
		if err != nil {
			break
		}
		said.WriteString(line)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	t.Log(said.String())
}

// allow lets this process open n files more than it has open.
func allow(n int) error {
	below, free := 0, 0 // a new file gets the lowest free number
	for ; n >= 0; below++ {
		var st syscall.Stat_t
		if syscall.Fstat(below, &st) == nil {
			continue
		}
		if free++; free > n {
			break
		}
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	limit.Cur = limit.Max
	if n >= 0 {
		limit.Cur = min(limit.Cur, uint64(below))
	}
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
}

// fewFiles runs in a process of its own, since the limit applies to a process.
func fewFiles(ctx context.Context, _, dir string) error {
	o := stormOptions()
	o.NoBackground = true
	st, err := varve.Open(ctx, dir, o)
	if err != nil {
		return err
	}
	record := acklog.New()
	refused := map[string]int{}
	check := func(what string, err error) error {
		switch {
		case err == nil:
			return nil
		case errors.Is(err, varve.ErrCorrupt) || errors.Is(err, varve.ErrNotFound) || errors.Is(err, varve.ErrConflict):
			return fmt.Errorf("%s: too few files taken for something else: %w", what, err)
		case !errors.Is(err, syscall.EMFILE):
			return fmt.Errorf("%s: it does not say why: %w", what, err)
		}
		refused[what]++
		return nil
	}
	n := 0
	put := func(key string) error {
		n++
		state := fmt.Sprint("v", n)
		record.Line("", "begin "+key+" "+state)
		_, err := st.Put(ctx, varve.Memory{ID: key, Content: storetest.Content(state, 3000)})
		switch {
		case err == nil:
			record.Line("", "done "+key+" "+state)
		case !errors.Is(err, varve.ErrOutcomeUnknown):
			record.Line("", "not "+key+" "+state)
		}
		return check("put", err)
	}
	key := func(i int) string { return fmt.Sprint("k", i%7) }
	work := func() (err error) {
		for i := range 24 { // more than a segment
			err = errors.Join(err, put(key(i)))
			if i%8 == 7 {
				err = errors.Join(err, check("flush", st.Flush(ctx)))
			}
		}
		_, gerr := st.Get(ctx, key(n))
		err = errors.Join(err, check("get", gerr), check("compact", st.Admin().Compact(ctx)))
		for _, lerr := range st.Memories(ctx) {
			err = errors.Join(err, check("list", lerr))
		}
		for _, herr := range st.History(ctx, key(n)) {
			if !errors.Is(herr, varve.ErrTruncated) {
				err = errors.Join(err, check("history", herr))
			}
		}
		for f, verr := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
			err = errors.Join(err, check("verify", verr))
			if f.Severity != varve.SeverityInfo {
				err = errors.Join(err, fmt.Errorf("verify took too few files for damage: %+v", f))
			}
		}
		second, oerr := varve.Open(ctx, dir, o)
		if oerr == nil {
			oerr = second.Close()
		}
		return errors.Join(err, check("open", oerr))
	}
	for spare := 0; spare < 12; spare++ {
		if err := work(); err != nil {
			return fmt.Errorf("without a limit: %w", err)
		}
		if spare%2 == 1 { // nothing is open yet
			if err := st.Close(); err != nil {
				return err
			}
			if err := allow(spare); err != nil {
				return err
			}
			st, err = varve.Open(ctx, dir, o)
			if err != nil {
				if err := check("open", err); err != nil {
					return fmt.Errorf("%d files: %w", spare, err)
				}
				if err := allow(-1); err != nil {
					return err
				}
				if left := storetest.OpenBelow(dir); len(left) > 0 {
					return fmt.Errorf("%d files: Open failed and left open: %v", spare, left)
				}
				if st, err = varve.Open(ctx, dir, o); err != nil {
					return fmt.Errorf("after %d files: %w", spare, err)
				}
			}
		}
		if err := allow(spare); err != nil {
			return err
		}
		err := work()
		if lerr := allow(-1); err != nil || lerr != nil {
			return fmt.Errorf("%d files: %w", spare, errors.Join(err, lerr))
		}
		record.Check(func(key string) string { return storetest.StateOf(st.Get(ctx, key)) })
		if err := errors.Join(work(), st.Flush(ctx)); err != nil {
			return fmt.Errorf("after %d files: %w", spare, err)
		}
		if h := st.Health(ctx); !h.OK {
			return fmt.Errorf("after %d files: %+v", spare, h)
		}
		record.Check(func(key string) string { return storetest.StateOf(st.Get(ctx, key)) })
		if q, _ := os.ReadDir(filepath.Join(dir, "quarantine")); len(q) > 0 || len(record.Wrong) > 0 {
			return fmt.Errorf("after %d files: set aside %v, wrong %v", spare, q, record.Wrong)
		}
	}
	if err := st.Close(); err != nil {
		return err
	}
	fmt.Println("refused for want of files:", refused)
	if left := storetest.OpenBelow(dir); len(left) > 0 {
		return fmt.Errorf("still open: %v", left)
	}
	return nil
}
