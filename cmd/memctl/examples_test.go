package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// TestExamplesParse: the examples of the help texts, and the command lines of README.md, name
// commands, flags and numbers of arguments that memctl has. Those of docs/ are run, see
// TestDocsExamples.
func TestExamplesParse(t *testing.T) {
	number := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for line := range strings.Lines(c.Example) {
			number += parsed(t, "the help of "+c.CommandPath(), line)
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk((&cli.App{Environment: cli.System()}).Program(root))
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "memctl ") {
			number += parsed(t, "README.md", line)
		}
	}
	if number < 120 {
		t.Errorf("only %d command lines: they are not read", number)
	}
}

// parsed counts the calls of memctl in a line.
func parsed(t *testing.T, where, line string) (number int) {
	for _, args := range calls(line) {
		number++
		c, rest, err := (&cli.App{Environment: cli.System()}).Program(root).Find(args)
		if err == nil {
			err = c.ParseFlags(rest)
		}
		if asked := err == nil && c.Flags().Changed("help"); err == nil && !asked && c.Name() != "help" {
			err = c.ValidateArgs(c.Flags().Args())
		}
		if err != nil {
			t.Errorf("%s: memctl %s: %v", where, strings.Join(args, " "), err)
		}
	}
	return number
}

// calls are the arguments of each memctl in a line of a shell. A help text may have a remark behind
// its example, after three blanks.
func calls(line string) (all [][]string) {
	line, _, _ = strings.Cut(line, "   ")
	var words []string
	word, quote, begun := "", rune(0), false
	end := func() {
		if begun {
			words = append(words, word)
		}
		word, begun = "", false
	}
	call := func() {
		end()
		if len(words) > 0 && words[0] == "xargs" {
			words = nil // it adds arguments
		}
		for len(words) > 0 && words[0] != "memctl" {
			words = words[1:] // EDITOR=… memctl edit, jq
		}
		if len(words) > 0 {
			all = append(all, words[1:])
		}
		words = nil
	}
	for _, r := range strings.TrimSpace(line) {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word += string(r)
		case r == '\'' || r == '"':
			quote, begun = r, true
		case r == ' ':
			end()
		case r == '|' || r == '&' || r == ';' || r == '(' || r == ')' || r == '>' || r == '<':
			call()
		default:
			word, begun = word+string(r), true
		}
	}
	call()
	return all
}
