package jsondoc

import (
	"encoding/json"
	"testing"
)

// TestMergeLargeIntegers: an integer that a float64 represents exactly keeps its spelling, although its
// shortest form has fewer digits; another number replaces it.
func TestMergeLargeIntegers(t *testing.T) {
	for _, c := range []struct {
		raw  string
		v    any
		want string
	}{
		{"20000000000000008", Number([]byte("20000000000000008")), "20000000000000008"},
		{"-20000000000000008", Number([]byte("-20000000000000008")), "-20000000000000008"},
		{"20000000000000008", 20000000000000012.0, "20000000000000012"},
		{"20000000000000009", Number([]byte("20000000000000009")), "20000000000000009"},
		{"20000000000000009", 20000000000000008.0, "2.000000000000001e+16"},
		{"-0", 0.0, "0"},
	} {
		out, same, err := MergeValue([]byte(c.raw), c.v, 0, 0)
		var a, b any
		if err != nil || same != (c.raw == c.want) || json.Unmarshal(out, &a) != nil || json.Unmarshal([]byte(c.want), &b) != nil || a != b || same && string(out) != c.raw {
			t.Errorf("%s merged with %v: %s %v %v, want %s", c.raw, c.v, out, same, err, c.want)
		}
	}
}
