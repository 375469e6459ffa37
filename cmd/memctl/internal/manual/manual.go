package manual

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Book has the data that all manual pages share.
type Book struct {
	Version string
	Date    string // 2026-01-31, "" if unknown
	Codes   []Item // the exit statuses
	Environ []Item // the environment variables
}

// Item is a term with its description.
type Item struct{ Name, About string }

// Page is one manual page.
type Page struct {
	Name string // name of the page's file, such as memctl-put.1
	Text string
}

// Pages returns the pages of a command and of all commands below it that the help lists.
func (b *Book) Pages(c *cobra.Command) []Page {
	list := []Page{{name(c) + ".1", b.page(c)}}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			list = append(list, b.Pages(sub)...)
		}
	}
	return list
}

func name(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

func (b *Book) page(c *cobra.Command) string {
	var p page
	p.request("TH", strings.ToUpper(name(c)), "1", b.Date, "memctl "+b.Version, "Varve")
	p.request("nh") // a command that is split at the end of a line cannot be pasted
	p.WriteString(".ad l\n")
	p.request("SH", "NAME")
	p.line(escape(name(c)) + ` \- ` + escape(strings.ToLower(c.Short[:1])+c.Short[1:]))
	p.request("SH", "SYNOPSIS")
	p.synopsis(c)
	p.request("SH", "DESCRIPTION")
	p.text(described(c))
	p.commands(c)
	p.options(c)
	if c.Example != "" {
		p.request("SH", "EXAMPLES")
		p.example(strings.TrimPrefix(strings.ReplaceAll(c.Example, "\n  ", "\n"), "  "))
	}
	p.list("EXIT STATUS", b.Codes)
	if !c.HasParent() {
		p.list("ENVIRONMENT", b.Environ)
	}
	p.seeAlso(c)
	return p.String()
}

func described(c *cobra.Command) string {
	if c.Long != "" {
		return c.Long
	}
	return sentence(c.Short)
}

// synopsis writes the words of the command in bold, and placeholders in italics.
func (p *page) synopsis(c *cobra.Command) {
	path, rest := c.CommandPath(), strings.TrimPrefix(c.UseLine(), c.CommandPath())
	if c.HasAvailableSubCommands() {
		p.line(bold(path) + " " + italic("command") + escape(" [flags]"))
		if c.HasParent() {
			return
		}
		p.request("br")
	}
	p.line(bold(path) + escape(rest))
}

func (p *page) commands(c *cobra.Command) {
	var list []Item
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			list = append(list, Item{sub.Name(), sentence(sub.Short)})
		}
	}
	p.list("COMMANDS", list)
}

func (p *page) options(c *cobra.Command) {
	var list []*pflag.Flag
	c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) { list = append(list, f) })
	inherited := c.InheritedFlags()
	inherited.VisitAll(func(f *pflag.Flag) { list = append(list, f) })
	list = slices.DeleteFunc(list, func(f *pflag.Flag) bool { return f.Hidden })
	if len(list) == 0 {
		return
	}
	p.request("SH", "OPTIONS")
	for _, f := range list {
		value, about := pflag.UnquoteUsage(f)
		term := bold("--" + f.Name)
		if f.Shorthand != "" {
			term = bold("-"+f.Shorthand) + ", " + term
		}
		if value != "" {
			term += " " + italic(value)
		}
		switch f.DefValue {
		case "", "false", "0", "0s", "[]", "true":
		default:
			about += "; default " + strings.Trim(f.DefValue, "[]")
		}
		p.item(term, sentence(about))
	}
}

func (p *page) list(title string, items []Item) {
	if len(items) == 0 {
		return
	}
	p.request("SH", title)
	for _, i := range items {
		p.item(bold(i.Name), sentence(i.About))
	}
}

// seeAlso writes the section SEE ALSO. It lists the page of the parent command and the pages of the subcommands. If
// the command has no subcommands and belongs to a group such as memctl assembly, seeAlso lists the other commands of
// the group instead.
func (p *page) seeAlso(c *cobra.Command) {
	var names []string
	if c.HasParent() {
		names = append(names, name(c.Parent()))
	}
	near := c
	if !c.HasAvailableSubCommands() && c.HasParent() && c.Parent().HasParent() {
		near = c.Parent()
	}
	for _, other := range near.Commands() {
		if other.IsAvailableCommand() && other != c {
			names = append(names, name(other))
		}
	}
	if len(names) == 0 {
		return
	}
	p.request("SH", "SEE ALSO")
	for i, n := range names {
		end := ","
		if i == len(names)-1 {
			end = ""
		}
		p.line(bold(n) + "(1)" + end)
	}
}
