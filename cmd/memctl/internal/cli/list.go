package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The values of --output. Without it, a list is printed as a table on a terminal, and elsewhere as lines of
// text for programs.
const (
	FormJSON  = "json"  // the same as --json
	FormJSONL = "jsonl" // one item of the list per line
	FormTable = "table"
	FormID    = "id" // one whole id per line
)

// OutputFlag adds the flag --output to a command; forms are its permitted values.
func (a *App) OutputFlag(c *cobra.Command, forms ...string) {
	c.Flags().StringVarP(&a.form, "output", "o", "", "print in this `format`: "+strings.Join(forms, ", "))
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp))
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations["output"] = strings.Join(forms, ",")
}

// chooseForm checks the value of --output. --output json has the same effect as --json.
func (a *App) chooseForm(cmd *cobra.Command) error {
	if !cmd.Flags().Changed("output") {
		return nil
	}
	forms := strings.Split(cmd.Annotations["output"], ",")
	switch {
	case !slices.Contains(forms, a.form):
		return Usagef(cmd.CommandPath(), "--output %q: must be %s", a.form, strings.Join(forms, ", "))
	case a.form == FormJSON:
		a.json, a.form = true, ""
	case a.json:
		return Usagef(cmd.CommandPath(), "--json and --output %s cannot be combined", a.form)
	}
	return nil
}

// asksJSON reports whether the arguments of a command request JSON output, even if they are otherwise invalid.
func asksJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	for i, arg := range args {
		switch arg {
		case "--json", "-ojson", "-o=json", "--output=json":
			return true
		case "json":
			if i > 0 && (args[i-1] == "-o" || args[i-1] == "--output") {
				return true
			}
		}
	}
	return false
}

// Form returns the value of --output, "" if the flag is not set or requests JSON.
func (a *App) Form() string { return a.form }

// Encodes reports whether the items of a list are written as JSON.
func (a *App) Encodes() bool { return a.Document != nil || a.form == FormJSONL }

// Item is one item of a list, with the forms in which it may be printed.
type Item struct {
	ID    string          // the whole id
	Whole bool            // show the id whole, never by an ending
	JSON  any             // the item in JSON output, and as a line of jsonl
	Text  func() string   // returns the item as a line of text for programs
	Cells func() []string // returns the cells of the item's row in a table
}

// List writes a list in the requested form.
type List struct {
	a     *App
	table *table
}

// List begins a list. member is the name of the list in the JSON output. columns are the columns of the table; the
// column with the name ID has the ids. If lines is not nil, the table shows ids by their endings.
func (a *App) List(member string, lines lineSource, columns ...Column) *List {
	l := &List{a: a}
	a.Document.Begin(member)
	if a.Document == nil && (a.form == FormTable || a.form == "" && a.Out.Screen) {
		id := slices.IndexFunc(columns, func(c Column) bool { return c.Name == "ID" })
		l.table = &table{a: a, lines: lines, columns: columns, id: id}
	}
	return l
}

// Add adds an item to the list, and prints the item at once. A table is the exception: Add holds back the first
// items until the widths of the columns are known.
func (l *List) Add(ctx context.Context, item Item) error {
	a := l.a
	switch {
	case a.Document != nil:
		a.Document.Item(item.JSON)
	case l.table != nil:
		if item.Whole {
			return l.table.add(ctx, "", item.Cells())
		}
		return l.table.add(ctx, item.ID, item.Cells())
	case a.form == FormJSONL:
		return a.Line(item.JSON)
	case a.form == FormID:
		fmt.Fprintln(a.Out, PrintableID(item.ID))
	default:
		fmt.Fprintln(a.Out, item.Text())
	}
	return nil
}

// End ends the list: it prints the items that Add has held back.
func (l *List) End(ctx context.Context) error {
	if l.table == nil {
		return nil
	}
	return l.table.end(ctx)
}

// Line writes a value as one line of JSON.
func (a *App) Line(v any) error {
	b, err := encode(v)
	if err == nil {
		err = a.WriteLine(b)
	}
	return err
}

// WriteLine writes a line of JSON that is encoded already.
func (a *App) WriteLine(b []byte) error {
	_, err := io.Writer(a.Out.Data(JSON)).Write(append(b, '\n'))
	return err
}

// ListEnd prints the end of a list of n items. last is the id of the last item. If more is true, the list has further
// items, and ListEnd prints the command that lists the items after last. If the list is empty, ListEnd prints the
// message that the function none returns. In JSON output, ListEnd only writes the member next: last if more is true,
// otherwise null.
func (a *App) ListEnd(cmd *cobra.Command, n int, last string, more bool, none func() string) {
	switch {
	case a.Document != nil && more:
		a.Document.Member("next", last)
	case a.Document != nil:
		a.Document.Member("next", nil)
	case more:
		a.Note("there are more items: %s", a.Repeated(cmd, nil, "after", last))
	case n == 0:
		a.Note("%s", none())
	}
}

// Repeated returns the command line of this run as text that a user can copy. In this text the flag called name has
// the given value.
func (a *App) Repeated(cmd *cobra.Command, args []string, name, value string) string {
	words := strings.Fields(cmd.CommandPath())
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Changed || f.Name == name {
			return
		}
		switch text := f.Value.String(); {
		case f.Value.Type() == "bool" && text == "true":
			words = append(words, "--"+f.Name)
		case f.Value.Type() == "bool":
			words = append(words, "--"+f.Name+"="+text)
		default:
			words = append(words, "--"+f.Name, ShellQuote(text))
		}
	})
	words = append(words, "--"+name, ShellQuote(value))
	if slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "-") }) {
		words = append(words, "--")
	}
	for _, arg := range args {
		words = append(words, ShellQuote(arg))
	}
	return strings.Join(words, " ")
}
