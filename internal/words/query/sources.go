package query

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
)

// Sources maps members of the metadata to the fields that their words are indexed in.
type Sources struct {
	fields [Fields][]string
	given  FieldSet
}

// The limits of Sources.
const (
	mostSources = 16
	mostName    = 128
)

var sourced = []Field{Name, Caption, Title, Tags, Category, Key}

// DefaultSources returns the sources of a store whose settings name no sources.
func DefaultSources() *Sources {
	s := &Sources{}
	s.fields[Name], s.fields[Caption], s.fields[Title] = []string{"speaker", "author", "name"}, []string{"caption"},
		[]string{"title"}
	s.fields[Tags], s.fields[Category], s.fields[Key] = []string{"tags"}, []string{"category"}, []string{"key"}
	return s
}

// ReadSources returns the sources of a setting. byField has member names by field, and replaces the defaults of
// its fields. A name in byField is removed from the defaults of other fields. Errors are *errs.FieldError.
func ReadSources(byField map[string][]string) (*Sources, error) {
	s := DefaultSources()
	bad := func(field, why string) (*Sources, error) {
		return nil, &errs.FieldError{Field: "fields", Value: human.Quote(field),
			Limit: "speaker, caption, title, tag, category, key, each with names of members of the metadata",
			Err:   fmt.Errorf("%w: %s", errs.ErrInvalid, why)}
	}
	of := map[string]Field{}
	for _, field := range slices.Sorted(maps.Keys(byField)) {
		f, ok := FieldNamed(field)
		switch names := byField[field]; {
		case !ok || !slices.Contains(sourced, f):
			return bad(field, "no such field, or not a field of the metadata")
		case s.given&Of(f) != 0:
			return bad(field, "the field is given twice")
		case len(names) > mostSources:
			return bad(field, fmt.Sprintf("%d names exceed the limit of %d", len(names), mostSources))
		default:
			s.given |= Of(f)
			s.fields[f] = slices.Clone(names)
			for _, name := range names {
				if name == "" || len(name) > mostName || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool {
					return r == ',' || r == '=' || unicode.IsSpace(r) || unicode.IsControl(r)
				}) {
					return bad(field,
						fmt.Sprintf("the name %s is empty, longer than %d bytes, or has a space, a comma or an equals sign",
							human.Quote(name), mostName))
				}
				if _, twice := of[name]; twice {
					return bad(field, fmt.Sprintf("the name %s is given twice", human.Quote(name)))
				}
				of[name] = f
			}
		}
	}
	for _, f := range sourced {
		if s.given&Of(f) == 0 {
			s.fields[f] = slices.DeleteFunc(s.fields[f], func(name string) bool { _, is := of[name]; return is })
		}
	}
	return s, nil
}

// ParseSources parses the format of Given and String into the argument of ReadSources.
func ParseSources(s string) (map[string][]string, error) {
	given := map[string][]string{}
	for _, piece := range strings.Fields(s) {
		field, names, ok := strings.Cut(piece, "=")
		_, twice := given[field]
		if !ok || twice {
			return nil, &errs.FieldError{Field: "fields", Value: human.Quote(s),
				Limit: `fields and their names, such as "speaker=from,author tag=labels"`, Err: errs.ErrInvalid}
		}
		given[field] = []string{}
		if names != "" {
			given[field] = strings.Split(names, ",")
		}
	}
	return given, nil
}

// Each calls visit for each member name of the metadata and the field to which the name belongs.
func (s *Sources) Each(visit func(f Field, name string)) {
	for _, f := range sourced {
		for _, name := range s.fields[f] {
			visit(f, name)
		}
	}
}

// Given returns the fields that the settings name, with their member names, as one string. Equal strings mean equal
// settings.
func (s *Sources) Given() string { return s.text(s.given) }

// String returns all fields with their names.
func (s *Sources) String() string { return s.text(AllFields) }

func (s *Sources) text(which FieldSet) string {
	var pieces []string
	for _, f := range sourced {
		if which&Of(f) != 0 {
			pieces = append(pieces, f.String()+"="+strings.Join(s.fields[f], ","))
		}
	}
	return strings.Join(pieces, " ")
}
