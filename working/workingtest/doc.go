// Package workingtest is the conformance suite for homes of working memory: one behaviour in every
// home. A home's own tests call Run; what only that home can do wrong (a server that goes away, a
// power cut) is tested beside it.
//
// A case whose name begins with F and a number is that row of the list of
// failures that other systems had.
//
// Homes measure lifetimes by different clocks, a server's among them, so cases
// never read a clock and never wait: Fixture.Advance lets time pass for the home. How it does that
// is up to the code that makes the Fixture.
package workingtest
