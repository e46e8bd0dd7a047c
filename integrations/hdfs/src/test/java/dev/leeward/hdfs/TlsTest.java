package dev.leeward.hdfs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.leeward.hdfs.testing.Eventually;
import dev.leeward.hdfs.testing.FakeController;
import dev.leeward.hdfs.testing.FakeNetwork;
import dev.leeward.hdfs.testing.Jmx;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.KeyStore;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.server.blockmanagement.FakeDataNodes;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TlsTest {

    private static final char[] PASSWORD = "only-for-this-test".toCharArray();

    @TempDir
    Path folder;

    private final FakeDataNodes nodes = new FakeDataNodes(2, 2);
    private final FakeNetwork network = new FakeNetwork(2, 2, 1_000_000_000L, 2_000_000_000L);

    /** A key with a certificate for a name, made by the JDK's keytool. */
    private SSLContext context(String name, String host) throws Exception {
        Path store = folder.resolve(name + ".p12");
        keytool("-genkeypair", "-keyalg", "EC", "-alias", "key", "-dname", "CN=" + host, "-ext", "san=dns:" + host,
                "-storetype", "PKCS12", "-keystore", store.toString(), "-storepass", new String(PASSWORD));
        keytool("-exportcert", "-rfc", "-alias", "key", "-file", folder.resolve(name + ".pem").toString(),
                "-keystore", store.toString(), "-storepass", new String(PASSWORD));
        KeyStore keys = KeyStore.getInstance("PKCS12");
        try (InputStream in = Files.newInputStream(store)) {
            keys.load(in, PASSWORD);
        }
        KeyManagerFactory factory = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        factory.init(keys, PASSWORD);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(factory.getKeyManagers(), null, null);
        return context;
    }

    private static void keytool(String... arguments) throws Exception {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "keytool").toString());
        command.addAll(List.of(arguments));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes());
        assertEquals(0, process.waitFor(), output);
    }

    private Configuration conf(FakeController controller, String authority) {
        Configuration conf = Harness.conf(controller.address(), "leeward");
        conf.set("dfs.leeward.tls.ca", folder.resolve(authority + ".pem").toString());
        // A handshake takes long on a busy machine, and a timeout would be the reason.
        conf.set("dfs.leeward.snapshot.deadline", "2s");
        return conf;
    }

    @Test
    void aControllerWithATrustedCertificateIsUsedAndAnyOtherIsNot() throws Exception {
        SSLContext tls = context("ours", "localhost");
        context("theirs", "localhost");
        try (FakeController controller = new FakeController(network, 0, tls)) {
            Harness.open(nodes, conf(controller, "ours")).awaitReason(Reason.RANKED);
            Harness harness = Harness.open(nodes, conf(controller, "theirs"));
            harness.awaitReason(Reason.TLS);
            assertEquals(2, harness.place("r0h0", 2, Set.of(), List.of()).size());
            assertEquals("tls", Jmx.bean().getFailure());
        }
    }

    @Test
    void certificatesThatAreReplacedInTheirFileAreTrustedWithoutARestart() throws Exception {
        SSLContext tls = context("ours", "localhost");
        context("theirs", "localhost");
        Path trusted = folder.resolve("trusted.pem");
        Files.copy(folder.resolve("theirs.pem"), trusted);
        try (FakeController controller = new FakeController(network, 0, tls)) {
            Harness harness = Harness.open(nodes, conf(controller, "trusted"));
            harness.awaitReason(Reason.TLS);
            Files.writeString(trusted, "");
            String why = "; dfs.leeward.tls.ca: `" + trusted + "`: no certificates";
            Eventually.holds("the reason", () -> Jmx.bean().getFailureDetail().endsWith(why));
            Files.copy(folder.resolve("ours.pem"), trusted, StandardCopyOption.REPLACE_EXISTING);
            harness.awaitReason(Reason.RANKED);
        }
    }

    @Test
    void aCertificateOfAnotherHostIsRejected() throws Exception {
        try (FakeController controller = new FakeController(network, 0, context("other", "leeward.example"))) {
            Harness.open(nodes, conf(controller, "other")).awaitReason(Reason.TLS);
        }
    }

    @ParameterizedTest
    @CsvSource({"'', no certificates", "no PEM, "})
    void aFileWithoutCertificatesIsAnInvalidSetting(String content, String why) throws Exception {
        Path file = folder.resolve("empty.pem");
        Files.writeString(file, content);
        try (FakeController controller = new FakeController(network)) {
            Configuration conf = conf(controller, "empty");
            Harness.open(nodes, conf);
            assertEquals("settings", Jmx.bean().getFailure());
            String detail = Jmx.bean().getFailureDetail();
            assertTrue(detail.startsWith("dfs.leeward.tls.ca: `" + file + "`: "), detail);
            assertTrue(why == null || detail.endsWith(": " + why), detail);
            conf.set("dfs.leeward.strict", "true");
            IllegalArgumentException error = assertThrows(
                    IllegalArgumentException.class, () -> Harness.open(nodes, conf));
            assertEquals(detail, error.getMessage());
        }
    }
}
