package unfix

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Case is one fix and how to remove it.
type Case struct {
	Name    string
	What    string // what is taken out
	Command string // what must fail then
	Pairs   []Pair
}

// Pair is a block of lines and what replaces it.
type Pair struct{ With, Without []string }

const (
	with    = "-- with the fix --"
	without = "-- without --"
)

// ReadCase reads a case from its file.
func ReadCase(file string) (*Case, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) < 4 || lines[0] == "" || lines[1] == "" {
		return nil, fmt.Errorf("%s: the first line says what is taken out, the second is the command", file)
	}
	c := &Case{Name: strings.TrimSuffix(filepath.Base(file), ".unfix"), What: lines[0], Command: lines[1]}
	var block *[]string
	for i, line := range lines[2:] {
		switch {
		case line == with:
			c.Pairs = append(c.Pairs, Pair{})
			block = &c.Pairs[len(c.Pairs)-1].With
		case line == without && len(c.Pairs) > 0:
			block = &c.Pairs[len(c.Pairs)-1].Without
		case block != nil:
			*block = append(*block, line)
		case line != "":
			return nil, fmt.Errorf("%s:%d: expected %q", file, i+3, with)
		}
	}
	for i := range c.Pairs {
		p := &c.Pairs[i]
		if p.With, p.Without = trim(p.With), trim(p.Without); len(p.With) == 0 {
			return nil, fmt.Errorf("%s: a block %q is empty", file, with)
		}
	}
	if len(c.Pairs) == 0 {
		return nil, fmt.Errorf("%s: it has no block %q", file, with)
	}
	return c, nil
}

// trim removes empty lines at both ends.
func trim(lines []string) []string {
	for len(lines) > 0 && strings.TrimSpace(lines[0]) == "" {
		lines = lines[1:]
	}
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// Tree is the text of a module's files, by name.
type Tree map[string][]string

// Apply returns the new text of the files that the case changes.
func (t Tree) Apply(c *Case) (map[string][]string, error) {
	changed := Tree{}
	for _, p := range c.Pairs {
		name, at, err := t.find(p.With, changed)
		if err != nil {
			return nil, err
		}
		lines := changed[name]
		if lines == nil {
			lines = t[name]
		}
		var text []string
		text = append(text, lines[:at]...)
		text = append(text, p.Without...)
		changed[name] = append(text, lines[at+len(p.With):]...)
	}
	return changed, nil
}

// find returns where a block occurs, searching changed before t.
func (t Tree) find(block []string, changed Tree) (name string, at int, err error) {
	var places []string
	for file, lines := range t {
		if c, ok := changed[file]; ok {
			lines = c
		}
		for i := range lines {
			if matches(lines[i:], block) {
				name, at = file, i
				places = append(places, fmt.Sprintf("%s:%d", file, i+1))
			}
		}
	}
	switch len(places) {
	case 1:
		return name, at, nil
	case 0:
		return "", 0, fmt.Errorf("nowhere in the tree:\n%s", strings.Join(block, "\n"))
	}
	return "", 0, fmt.Errorf("in %d places (%s), give it more lines:\n%s", len(places), strings.Join(places, ", "),
		strings.Join(block, "\n"))
}

func matches(lines, block []string) bool {
	if len(lines) < len(block) {
		return false
	}
	for i, want := range block {
		if strings.TrimSpace(lines[i]) != strings.TrimSpace(want) {
			return false
		}
	}
	return true
}
