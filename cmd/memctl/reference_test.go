package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/working"
)

var updateReference = flag.Bool("update", false, "write docs/reference")

// made is what each page of the reference begins with, below its heading.
const made = "Made from the code by `go test ./cmd/memctl -run TestReference -update`: change the code, not this\npage.\n"

// TestReference compares docs/reference with what the code says: the commands as cobra has them, the
// settings, the exit codes, and the comments of errors and events.
func TestReference(t *testing.T) {
	for name, text := range map[string]string{
		"commands.md":   commandsReference(),
		"settings.md":   settingsReference(t),
		"exit-codes.md": exitCodesReference(),
		"errors.md":     errorsReference(t),
		"events.md":     eventsReference(t),
	} {
		file := filepath.Join("..", "..", "docs", "reference", name)
		if *updateReference {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		have, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(have) != text {
			t.Errorf("docs/reference/%s is not what the code says: go test ./cmd/memctl -run TestReference -update; it differs from\n%s", name, firstOther(string(have), text))
		}
	}
}

// firstOther is the first line of text that have does not have in its place.
func firstOther(have, text string) string {
	lines := strings.Split(have, "\n")
	for i, line := range strings.Split(text, "\n") {
		if i >= len(lines) || lines[i] != line {
			return fmt.Sprintf("line %d on: %s", i+1, line)
		}
	}
	return "its end on"
}

// cell is a text in a table of Markdown.
func cell(s string) string { return strings.ReplaceAll(markdown(s), "|", `\|`) }

// markdown is a text in which no character is a mark.
func markdown(s string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "<", `\<`, "`", "\\`", "[", `\[`).Replace(s)
}

func inCode(s string) string { return "`" + strings.ReplaceAll(s, "|", `\|`) + "`" }

func commandsReference() string {
	root := (&cli.App{Environment: cli.System()}).Program(root)
	var b strings.Builder
	b.WriteString("# Commands of memctl\n\n" + made + `
Every command takes these flags. ` + "`--json`" + ` gives the document that [json.md](../json.md) describes;
the exit statuses are in [exit-codes.md](exit-codes.md).

`)
	flagTable(&b, root.PersistentFlags())
	b.WriteString("\n| command | |\n|---|---|\n")
	list := documented(root)
	for _, c := range list {
		fmt.Fprintf(&b, "| [%s](#%s) | %s |\n", c.CommandPath(), strings.ReplaceAll(c.CommandPath(), " ", "-"), cell(c.Short))
	}
	for _, c := range list {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n", c.CommandPath(), markdown(c.Short))
		if c.Runnable() {
			fmt.Fprintf(&b, "\n```text\n%s\n```\n", c.UseLine())
		}
		for _, paragraph := range strings.Split(strings.TrimSpace(c.Long), "\n\n") {
			switch {
			case paragraph == "":
			case strings.Contains(paragraph, "\n  ") || strings.HasPrefix(paragraph, "  "):
				fmt.Fprintf(&b, "\n```text\n%s\n```\n", paragraph)
			default:
				fmt.Fprintf(&b, "\n%s\n", markdown(paragraph))
			}
		}
		if len(c.Aliases) > 0 {
			fmt.Fprintf(&b, "\nOther names: %s.\n", strings.Join(c.Aliases, ", "))
		}
		if f := c.LocalNonPersistentFlags(); f.HasAvailableFlags() {
			b.WriteString("\n")
			flagTable(&b, f)
		}
		if c.Example != "" {
			fmt.Fprintf(&b, "\n```sh\n%s\n```\n", strings.ReplaceAll(strings.TrimPrefix(c.Example, "  "), "\n  ", "\n"))
		}
	}
	return b.String()
}

// documented are the commands below root, those of each right behind it, without those that cobra
// makes for each shell.
func documented(c *cobra.Command) (list []*cobra.Command) {
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		list = append(list, sub)
		if sub.Name() != "completion" {
			list = append(list, documented(sub)...)
		}
	}
	return list
}

func flagTable(b *strings.Builder, flags *pflag.FlagSet) {
	var rows []string
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" || f.Name == "version" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if value != "" {
			name += " " + value
		}
		switch f.DefValue {
		case "", "false", "0", "0s", "[]", "true":
		default:
			usage += "; default " + strings.Trim(f.DefValue, "[]")
		}
		rows = append(rows, fmt.Sprintf("| %s | %s |\n", inCode(name), cell(usage)))
	})
	if len(rows) > 0 {
		b.WriteString("| flag | |\n|---|---|\n" + strings.Join(rows, ""))
	}
}

func settingsReference(t *testing.T) string {
	var b strings.Builder
	b.WriteString("# Settings\n\n" + made + `
## config.json

These belong to the store and hold for every process that has it open. ` + "`memctl config`" + ` lists them,
` + "`memctl config set NAME VALUE`" + ` changes one; the file may also be edited. Every process looks for a
change once a second. A member that is not valid has its default and is reported; members that the
program does not know are kept. For the sizes of one document 0 means the default. The member
` + "`varve`" + `, the number of the format, marks the folder as a store.

| setting | default | values | |
|---|---|---|---|
`)
	for _, s := range settings() {
		fmt.Fprintf(&b, "| %s | %v | %s | %s |\n", inCode(s.name), s.value(&varve.Config{}), cell(valuesOf(t, s.name)), cell(s.about))
	}
	b.WriteString("\nThe member `vectors` is an object. It is written with the first embedding and by `memctl reindex`.\n\n| setting | type | |\n|---|---|---|\n")
	for _, f := range sourceOf(t, "internal/settings/config.go").structs["VectorConfig"].fields {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", inCode("vectors."+f.json), f.kind, cell(f.comment))
	}
	b.WriteString(`
## Sizes that are not settings

| | |
|---|---|
`)
	size := func(n int) string { return fmt.Sprintf("%s (%d bytes)", cli.Size(int64(n)), n) }
	for _, r := range [][2]string{
		{"a segment of the log: `memctl init --segment-size`, `Options.SegmentSize`", fmt.Sprintf("%s; from %d to %d bytes, a multiple of 4096", size(segment.DefaultSize), segment.MinSize, segment.MaxSize)},
		{"one commit", "at most half a segment"},
		{"a document that is read, whatever `max_memory_bytes` is today", size(places.StoredMost)},
		{"an id within a scope of working memory", fmt.Sprintf("%d bytes", working.MaxID)},
		{"a key of working memory", fmt.Sprintf("1 to %d bytes; it does not begin with `_`", working.MaxKey)},
		{"a value of working memory, or an entry of the scratchpad", size(working.MaxValue)},
		{"the description of a checkpoint", size(working.MaxDescription)},
		{"keys in a scope: `working.Options.MaxKeys`", fmt.Sprint(working.DefaultKeys)},
		{"keys and values in a scope: `working.Options.MaxBytes`", size(working.DefaultBytes)},
		{"entries of the scratchpad, of which the oldest go: `working.Options.MaxNotes`", fmt.Sprint(working.DefaultNotes)},
		{"checkpoints of a scope, of which the oldest go: `working.Options.Checkpoints`", fmt.Sprint(working.DefaultCheckpoints)},
	} {
		fmt.Fprintf(&b, "| %s | %s |\n", r[0], r[1])
	}
	b.WriteString(`
## Environment of memctl

| variable | |
|---|---|
`)
	for _, v := range cli.Variables() {
		fmt.Fprintf(&b, "| %s | %s |\n", inCode(v.Name), markdown(v.Text))
	}
	return b.String()
}

// valuesOf is what a setting may be, as its refusal says.
func valuesOf(t *testing.T, name string) string {
	if values := choices(name); values != nil {
		return strings.Join(values, ", ")
	}
	if name == notesIgnore {
		return "up to 1000 patterns, with *, ?, [a-z] and **; one without a slash is of the last segment"
	}
	var c varve.Config
	err := assign(&c, name, "-1")
	if err == nil {
		err = c.Validate()
	}
	var refused *varve.FieldError
	if !errors.As(err, &refused) || refused.Limit == "" {
		t.Fatalf("%s: -1 is not refused with a range: %v", name, err)
	}
	return refused.Limit
}

func exitCodesReference() string {
	var b strings.Builder
	b.WriteString("# Exit statuses and kinds of failures\n\n" + made + `
Scripts may rely on both. ` + "`memctl help exit-codes`" + ` prints the same table.

| status | |
|---|---|
`)
	for _, c := range cli.ExitCodes() {
		fmt.Fprintf(&b, "| %d | %s |\n", c.Code, cell(c.Text))
	}
	var order []string
	for _, c := range cli.Gravity() {
		order = append(order, fmt.Sprint(c))
	}
	b.WriteString("\nIf a command has several failures, the gravest determines the exit status, in this order: " +
		strings.Join(order, ", ") + ".\n" + `
With ` + "`--json`" + ` the document ends with the failures (see [json.md](../json.md)). Their ` + "`kind`" + ` is finer
than the status; their ` + "`fix`" + ` is the remedy, where one is known. A kind without a remedy in this table
has several, or none: the message has the one that applies.

| kind | status | remedy |
|---|---|---|
`)
	for _, k := range cli.Kinds() {
		fmt.Fprintf(&b, "| %s | %d | %s |\n", k.Kind, k.Code, cell(k.Fix))
	}
	return b.String()
}
