//! Numeric ids: dense indices, so that tables indexed by them are plain vectors.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub u32);

        impl $name {
            /// The index of this id in a table over all ids of its kind.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id! {
    /// A host. Hosts are numbered rack by rack, so the hosts of every domain are a range.
    HostId
}
id! {
    /// A node of the domain tree: a rack, a pod, or (on a mesh) a single host. Racks come first, then pods.
    DomainId
}
id! {
    /// A link or a device: anything with a finite rate that work passes through.
    ResourceId
}
id! {
    /// Racks that fail together. By default each rack is a fault domain; the cluster file may group racks by power or
    /// by switch.
    FaultDomainId
}
