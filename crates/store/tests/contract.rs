//! The contract of a store, on the embedded engine and on the strict one.

mod embedded {
    tidegate_testkit::store_contract!(tidegate_testkit::store_contract::open_embedded);
}

mod strict {
    tidegate_testkit::store_contract!(tidegate_testkit::store_contract::open_strict);
}
