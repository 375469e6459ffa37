package importer

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// layouts are the variants of Python's isoformat; a fraction is parsed even if the layout has none.
// Layouts with a zone come first.
var layouts = []string{
	"2006-01-02T15:04:05Z07:00",
	"2006-01-02 15:04:05Z07:00",
	"2006-01-02T15:04:05Z0700",
	"2006-01-02T15:04:05",
	"2006-01-02 15:04:05",
	"2006-01-02T15:04",
	"2006-01-02",
}

// readTime parses a JSON string as a time, and returns this time as RFC 3339 in UTC. A time without a zone is in loc.
// The bool is false if val is not a string, or has none of the layouts.
func readTime(val jsontext.Value, loc *time.Location) (string, bool) {
	if val.Kind() != '"' {
		return "", false
	}
	s := unquote(val)
	for _, layout := range layouts {
		if t, err := time.ParseInLocation(layout, s, loc); err == nil {
			return t.UTC().Format(time.RFC3339Nano), true
		}
	}
	return "", false
}
