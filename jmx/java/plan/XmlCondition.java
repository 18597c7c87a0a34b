package framestorm.plan;

import java.io.IOException;
import java.io.StringReader;
import java.util.function.UnaryOperator;
import javax.xml.parsers.DocumentBuilder;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import javax.xml.xpath.XPathConstants;
import javax.xml.xpath.XPathExpression;
import javax.xml.xpath.XPathExpressionException;
import javax.xml.xpath.XPathFactory;
import org.w3c.dom.Document;
import org.w3c.dom.NodeList;
import org.xml.sax.InputSource;
import org.xml.sax.SAXException;

/** An XPath whose nodes an answer has, or that is true of it: //face, count(//face) = 2. */
final class XmlCondition implements Condition {
    private final String path;

    XmlCondition(String path) throws XPathExpressionException {
        this.path = path;
        compiled(); // for its mistakes; each thread needs one of its own
    }

    private XPathExpression compiled() throws XPathExpressionException {
        return XPathFactory.newInstance().newXPath().compile(path);
    }

    @Override
    public boolean isMet(String answer, UnaryOperator<String> filled) {
        return Values.read(answer, () -> {
            try {
                return isMet(document(answer), compiled());
            } catch (SAXException ignored) { // it is no XML
                return false;
            } catch (IOException | ParserConfigurationException | XPathExpressionException error) {
                throw new IllegalStateException(error);
            }
        });
    }

    private static Document document(String answer) throws IOException, ParserConfigurationException, SAXException {
        DocumentBuilderFactory factory = DocumentBuilderFactory.newInstance();
        factory.setFeature("http://apache.org/xml/features/disallow-doctype-decl", true);
        DocumentBuilder builder = factory.newDocumentBuilder();
        builder.setErrorHandler(null); // else it prints
        return builder.parse(new InputSource(new StringReader(Given.withoutMark(answer))));
    }

    private static boolean isMet(Document document, XPathExpression expression) throws XPathExpressionException {
        try {
            return ((NodeList) expression.evaluate(document, XPathConstants.NODESET)).getLength() > 0;
        } catch (XPathExpressionException ignored) { // its value is no set of nodes
            return (Boolean) expression.evaluate(document, XPathConstants.BOOLEAN);
        }
    }
}
