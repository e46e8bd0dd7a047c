//! Names for things by number: dense indices, so that tables about them are plain vectors.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub u32);

        impl $name {
            /// The position of this thing in a table about things of its kind.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id! {
    /// A host, numbered rack by rack: the hosts of every domain are a range.
    HostId
}
id! {
    /// A node of the domain tree: a rack, a pod, or (on a mesh) a host by itself. Racks come first, then pods.
    DomainId
}
id! {
    /// A link or a device: anything work passes through at a finite rate.
    ResourceId
}
id! {
    /// What fails together: a rack, unless the cluster file groups racks by power or by switch.
    FaultDomainId
}
