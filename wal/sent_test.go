package wal

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/wal/past"
)

// sentTo records that a copy elsewhere has everything below a segment.
func (f *filled) sentTo(number uint64) {
	f.Helper()
	s, _, err := f.l.Past().Start(number + 1)
	if err != nil {
		f.Fatal(err)
	}
	id, err := f.l.Past().ID()
	if err == nil {
		err = f.l.Past().SetSent(id, Mark{LSN: s.PrevEnd, Sum: s.PrevSum}, 0, f.now, 0o600)
	}
	if err != nil {
		f.Fatal(err)
	}
}

func (f *filled) want(what string, numbers ...uint64) {
	f.Helper()
	if got := f.numbers(); fmt.Sprint(got) != fmt.Sprint(numbers) {
		f.Errorf("%s: the archive has %v, want %v", what, got, numbers)
	}
}

// What a copy elsewhere lacks stays in the archive although the settings of the history would remove it, by
// bytes or by age; once it was sent, it is removed.
func TestSentKeepsArchive(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"bytes", "age"} {
		f := filledLog(t, 6)
		f.sentTo(3)
		if by == "bytes" {
			f.bytes = 0
		} else {
			f.age = time.Hour
		}
		f.release()
		f.want(by+", segment 3 was sent", 3, 4, 5, 6)
		f.segment()
		f.want(by+", another segment", 3, 4, 5, 6, 7)
		if s, ok, err := f.l.Past().Sent(f.l.Durable()); !ok || err != nil || s.Behind == 0 {
			t.Errorf("%+v %v %v", s, ok, err)
		}
		f.sentTo(6)
		f.release()
		f.want(by+", segment 6 was sent", 6, 7)
		if err := f.l.Past().ForgetSent(); err != nil {
			t.Fatal(err)
		}
		f.release()
		if got := f.numbers(); by == "bytes" && len(got) != 0 || by == "age" && len(got) > 1 {
			t.Errorf("%s, without a mark: the archive has %v", by, got)
		}
	}
}

// Beyond the bound, what a copy elsewhere lacks is removed, oldest first; then the mark reports that the copy
// is behind, and nothing is kept for it until it has begun again.
func TestSentBound(t *testing.T) {
	t.Parallel()
	f := filledLog(t, 6)
	f.sentTo(1)
	all, _ := f.l.Archive().Kept()
	unsent := all/2 + all/12 // three and a half copies
	f.l.o.Unsent = func() int64 { return unsent }
	f.bytes = 0
	if err := f.l.keepBudget(); err != nil {
		t.Fatal(err)
	}
	var behind *errs.CopyBehindError
	if _, ok, err := f.l.Past().Sent(f.l.Durable()); !ok || !errors.As(err, &behind) || behind.Oldest <= behind.Sent {
		t.Fatalf("%v %v", ok, err)
	}
	f.want("past the bound", 4, 5, 6)
	f.release()
	f.want("of a copy that is behind")
	f.sentTo(6)
	f.segment()
	f.segment()
	f.want("of a copy that has begun again", 6+1, 6+2)
}

// Without a bound, or for an invalid mark, nothing is kept; for a damaged mark everything is.
func TestSentInvalid(t *testing.T) {
	t.Parallel()
	f := filledLog(t, 3)
	f.sentTo(1)
	f.bytes = 0
	f.l.o.Unsent = func() int64 { return 0 }
	f.release()
	f.want("without a bound")

	f = filledLog(t, 3)
	f.sentTo(1)
	name := f.l.o.wal("sent")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	b[45] ^= 1
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	f.bytes = 0
	f.release()
	f.want("of a damaged mark", 1, 2, 3)
	f.sentTo(2)
	f.release()
	f.want("written again", 2, 3)
	if err := f.l.broken(past.Purged, f.l.Durable()); err != nil {
		t.Fatal(err)
	}
	f.release()
	f.want("of a mark whose log has ended")
}
