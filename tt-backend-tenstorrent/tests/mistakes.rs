//! Mistakes that do not compile, each beside a twin that does.

#[test]
fn mistakes_do_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/mistakes/right.rs");
    cases.compile_fail("tests/mistakes/another_session.rs");
    cases.compile_fail("tests/mistakes/handle_gone.rs");
    cases.compile_fail("tests/mistakes/host_as_device.rs");
    cases.compile_fail("tests/mistakes/view_staged.rs");
}
