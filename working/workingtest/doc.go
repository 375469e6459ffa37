// Package workingtest is the conformance suite for homes of working memory, which checks that every
// home behaves the same. A home's own tests call Run; failures that only that home can have (an
// unreachable server, a power cut) are tested in the home's package.
//
// A case whose name begins with F and a number belongs to that row of the list of failures of other
// systems.
//
// Homes measure lifetimes by different clocks, one of them a server's, so cases never read a clock
// and never wait: Fixture.Advance lets time pass for the home. The code that makes the Fixture
// decides how.
package workingtest
