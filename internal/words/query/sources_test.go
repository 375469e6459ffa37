package query

import (
	"errors"
	"strings"
	"testing"

	"github.com/varve-db/varve/errs"
)

func TestSources(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                             "speaker=speaker,author,name caption=caption title=title tag=tags category=category key=key",
		"speaker=from title=":          "speaker=from caption=caption title= tag=tags category=category key=key",
		"tags=labels,caption":          "speaker=speaker,author,name caption= title=title tag=labels,caption category=category key=key",
		"name=name caption=alt,title ": "speaker=name caption=alt,title title= tag=tags category=category key=key",
	} {
		given, err := ParseSources(in)
		if err != nil {
			t.Fatal(in, err)
		}
		s, err := ReadSources(given)
		if err != nil || s.String() != want {
			t.Errorf("%q: %v, %v, want %s", in, s, err, want)
			continue
		}
		if given, err = ParseSources(s.Given()); err != nil {
			t.Fatal(in, err)
		}
		if again, err := ReadSources(given); err != nil || again.String() != want || again.Given() != s.Given() {
			t.Errorf("%q: %v, %v", s.Given(), again, err)
		}
	}
	if s := DefaultSources(); s.Given() != "" {
		t.Error(s.Given())
	}
	for _, in := range []string{"speaker", "speaker=a speaker=b", "content=a", "date=a", "place=a", "tag=a,,b", "tag=a tags=b", "title=a key=a", "title=a,a", "tag=" + strings.Repeat("x", 200), "tag=" + strings.Repeat("x,", 20) + "y"} {
		given, err := ParseSources(in)
		if err == nil {
			_, err = ReadSources(given)
		}
		if !errors.Is(err, errs.ErrInvalid) || !errors.As(err, new(*errs.FieldError)) {
			t.Errorf("%q: %v", in, err)
		}
	}
}
