package segment

import "testing"

// Each combination of fields is read as it was written, and each single field also by a reader that
// skips the others.
func TestFields(t *testing.T) {
	const at = int64(1_790_000_000_000_000)
	for _, f := range []Fields{{}, {Reading: at - 1}, {Writer: 1}, {Cause: 2}, {Writer: 1<<32 - 1, Cause: 255},
		{Reading: 1, Writer: 7}, {Reading: -1, Writer: 7, Cause: 1}, {Restores: 64}, {Writer: 1, Cause: 5, Restores: 72}} {
		b := f.AppendTo([]byte("key"))
		if len(b)-3 != f.Size() {
			t.Errorf("%+v: %d bytes, Size is %d", f, len(b)-3, f.Size())
		}
		h := Header{KeyLen: 3, Time: at, LSN: 80}
		if f.Size() > 0 {
			h.Flags = FlagFields
		}
		key, value, got := h.Split(append(b, "value"...))
		want := f
		if want.Reading == 0 {
			want.Reading = at
		}
		if string(key) != "key" || string(value) != "value" || got != want {
			t.Errorf("%q, %q, %+v, want %+v", key, value, got, want)
		}
	}
	// A version that is not before the entry.
	h := Header{KeyLen: 1, Time: at, LSN: 64, Flags: FlagFields}
	later := Fields{Restores: 64}
	if _, _, f := h.Split(later.AppendTo([]byte("k"))); f.Restores != 0 {
		t.Errorf("%+v", f)
	}
	// A number that this program does not know, and known ones with another length.
	h = Header{KeyLen: 1, Time: at, Flags: FlagFields}
	payload := []byte{'k', 15, 0, 9, 1, 5, 2, 2, 1, 1, 3, 0, 2, 4, 8, 0, 0, 0, 'v'}
	if _, value, f := h.Split(payload); string(value) != "v" || f.Writer != 8 || f.Cause != 0 || f.Reading != at {
		t.Errorf("%q, %+v", value, f)
	}
}
