package wal

import "testing"

// A process that was stopped while it cast an anchor and continues too late does not change the present anchor,
// and the process that casts the next one does not get the time of the previous one.
func TestAnchorOvertaken(t *testing.T) {
	t.Parallel()
	l, _ := open(t, t.TempDir())
	defer l.Close()
	first, second := Anchor{Offset: -7, At: 100}, Anchor{Offset: 20, At: 5000}
	if l.Clock().Anchor() != (Anchor{}) || !l.Clock().Cast(Anchor{}, first) || l.Clock().Anchor() != first {
		t.Fatalf("%+v", l.Clock().Anchor())
	}
	if !l.Clock().Cast(first, second) || l.Clock().Anchor() != second {
		t.Fatalf("%+v", l.Clock().Anchor())
	}
	for _, was := range []Anchor{{}, first} {
		if l.Clock().Cast(was, Anchor{Offset: 30, At: 200}) || l.Clock().Anchor() != second {
			t.Errorf("after one who saw %+v: %+v", was, l.Clock().Anchor())
		}
	}
}
