package filter

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/varve-db/varve/internal/human"
)

// Tally counts members and values in the metadata of memories. With these counts it explains why no memory satisfies a
// condition.
type Tally struct {
	c     *Cond
	n     int
	kinds map[string]int // counts of the kinds of values that the condition's member has
	names map[string]int // counts of all members of the metadata, by name
	below map[string]int // counts of the members inside the condition's member, if that is an object
}

// Tally returns an empty tally for the condition.
func (c *Cond) Tally() *Tally {
	return &Tally{c: c, kinds: map[string]int{}, names: map[string]int{}, below: map[string]int{}}
}

// mostNames is the maximum number of names of members that a Tally counts.
const mostNames = 1000

// Add counts the metadata of one memory: the names of its members, and the kinds of the values of the condition's
// member.
func (t *Tally) Add(metadata map[string]any) {
	t.n++
	count(t.names, metadata)
	v, ok := t.c.member(metadata)
	if !ok {
		return
	}
	list, is := v.([]any)
	if !is {
		list = []any{v}
	}
	for _, v := range list {
		_, _, number := scalar(v)
		switch m, object := v.(map[string]any); {
		case object:
			t.kinds["object"]++
			count(t.below, m)
		case number:
			t.kinds["number"]++
		default:
			t.kinds["text"]++
		}
	}
	if len(list) == 0 {
		t.kinds["list"]++
	}
}

func count(names map[string]int, object map[string]any) {
	for name := range object {
		if _, ok := names[name]; ok || len(names) < mostNames {
			names[name]++
		}
	}
}

// String returns the reason for which no memory satisfies the condition, or "" if no reason is apparent.
func (t *Tally) String() string {
	c, name := t.c, human.Quote(strings.Join(t.c.path, "."))
	if t.n == 0 || c.op == "!" || c.op == "!=" {
		return ""
	}
	if len(t.kinds) == 0 {
		return t.missing(name)
	}
	if c.op == "" || len(t.kinds) > 1 {
		return ""
	}
	value := ""
	for _, v := range c.values {
		if number := json.Valid([]byte(v)) && v[0] != '"'; number != (t.kinds["number"] > 0) {
			value = human.Quote(v)
		}
	}
	order := strings.ContainsAny(c.op, "<>")
	switch {
	case t.kinds["object"] > 0 && len(t.below) == 0:
		return name + " is an object without members"
	case t.kinds["object"] > 0:
		return fmt.Sprintf("%s is an object: name a member of it, as in %s.%s", name, strings.Join(c.path, "."),
			usual(t.below)[0])
	case t.kinds["number"] > 0 && c.op == "^=":
		return name + " is a number, and ^= compares only texts"
	case value == "":
	case t.kinds["number"] > 0 && order:
		return fmt.Sprintf("%s is a number, and a number cannot be ordered relative to the text %s", name, value)
	case t.kinds["number"] > 0:
		return fmt.Sprintf("%s is a number, and %s is not", name, value)
	case t.kinds["text"] > 0 && order:
		return fmt.Sprintf("%s is a text, which is compared with %s byte by byte", name, value)
	}
	return ""
}

// missing returns the message for a member that no memory has, with the members that exist.
func (t *Tally) missing(name string) string {
	all := usual(t.names)
	if like := slices.IndexFunc(all, func(s string) bool {
		return strings.EqualFold(s, t.c.path[0]) && s != t.c.path[0]
	}); like >= 0 {
		return fmt.Sprintf("no memory has a member %s in its metadata, but some have %s", name, human.Quote(all[like]))
	}
	if len(all) == 0 {
		return "no memory has metadata"
	}
	shown := all[:min(len(all), 8)]
	for i, s := range shown {
		if strings.Trim(s, letters) != "" {
			shown[i] = human.Quote(s)
		}
	}
	return fmt.Sprintf("no memory has a member %s in its metadata; existing members: %s", name,
		strings.Join(shown, ", "))
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

// usual returns the names sorted by their counts, the most frequent name first. Names with equal counts are in
// alphabetical order.
func usual(names map[string]int) []string {
	return slices.SortedFunc(maps.Keys(names), func(a, b string) int {
		return cmp.Or(names[b]-names[a], strings.Compare(a, b))
	})
}
